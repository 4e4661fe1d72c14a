"""npformer generate: let a language model write, and print as it does."""

import argparse
import sys
import warnings
from typing import Any

from npformer.core import use_precision
from npformer.interop import PretrainedWriter, from_pretrained
from npformer.interop.folder import CONFIG
from npformer.pipelines import TextWriter
from npformer.tools.cli import common
from npformer.tools.cli.common import option
from npformer.tools.cli.load_model import add_force, load_any
from npformer.tools.plugins import load_plugins


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    epilog = (
        "npformer generate RUN 'ROMEO:' --tokens 500 --temperature 0.8\n\n"
        "The same seed writes the same text. --temperature 0 always takes the likeliest token."
    )
    summary = "let a model of a text write on"
    parser = common.add_command(commands, "generate", run, summary, epilog)
    common.add_model(parser, predicts=False)
    beginning = "what it goes on from (default: a line break)"
    parser.add_argument("prompt", nargs="?", default="\n", metavar="BEGINNING", help=beginning)
    option(parser, "--tokens N", "how many it writes", 300)
    temperature = "below 1 likely tokens become likelier, above 1 all become more alike"
    option(parser, "--temperature X", temperature, 1.0)
    option(parser, "--top-k N", "draw from so many of the likeliest tokens only")
    option(parser, "--top-p P", "draw from the fewest tokens that have this probability together")
    option(parser, "--seed N", "of what is drawn", 0)
    add_force(parser)
    common.add_backend(parser)
    common.add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print the beginning and what the model writes behind it."""
    load_plugins(options.plugin)
    writer = _writer(options)
    if not isinstance(writer, TextWriter | PretrainedWriter):
        raise ValueError(
            f"{options.model} holds a {type(writer).__name__}; expected a TextWriter, which "
            "npformer train BOOK.txt makes, or a folder of GPT-2. npformer predict is for others"
        )
    if options.ranks.rank:
        return 0  # the first writes alone
    tokenizer = writer.tokenizer if isinstance(writer, PretrainedWriter) else writer.of_tokenizer
    if unknown := tokenizer.unknown_in(options.prompt):
        warnings.warn(
            f"the model was not trained on {', '.join(map(repr, unknown))}: it knows nothing of "
            "these characters",
            stacklevel=2,
        )
    with use_precision(options.precision, options.backend):
        pieces = writer.stream(
            options.prompt,
            options.tokens,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=options.seed,
        )
        sys.stdout.write(options.prompt.removeprefix("\n"))
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def _writer(options: argparse.Namespace) -> Any:
    """Return what a run's folder holds, or one in Hugging Face's layout."""
    if (options.model / CONFIG).is_file():
        return from_pretrained(options.model).to(options.backend)
    return load_any(options.model, options.backend, force=options.force)
