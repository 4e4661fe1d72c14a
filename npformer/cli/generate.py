"""npformer generate: let a language model write, and print the text as it grows."""

import argparse
import sys
import warnings
from typing import Any

from npformer.cli import common
from npformer.cli.common import option
from npformer.cli.trained import Trained, add_loading
from npformer.core import a_type, use_precision
from npformer.interop import PretrainedWriter, from_pretrained
from npformer.interop.folder import CONFIG
from npformer.tasks.estimators import TextWriter


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    epilog = (
        "npformer generate RUN 'ROMEO:' --tokens 500 --temperature 0.8\n\n"
        "The same seed writes the same text. --temperature 0 always takes the likeliest token."
    )
    summary = "let a language model continue a text"
    parser = common.add_command(commands, "generate", run, summary, epilog)
    common.add_model(parser, predicts=False)
    beginning = "the text to continue (default: a line break)"
    parser.add_argument("prompt", nargs="?", default="\n", metavar="BEGINNING", help=beginning)
    option(parser, "--tokens N", "how many to write", 300)
    temperature = "below 1 likely tokens become likelier, above 1 all become more alike"
    option(parser, "--temperature X", temperature, 1.0)
    option(parser, "--top-k N", "draw only from this many of the likeliest tokens")
    option(parser, "--top-p X", "draw from the fewest tokens that together have this probability")
    option(parser, "--seed N", "of the draws", 0)
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the beginning and what the model writes after it."""
    if (options.model / CONFIG).is_file():  # a folder in Hugging Face's layout
        writer = from_pretrained(options.model).to(options.backend)
    else:
        writer = Trained.load(options).model
    if not isinstance(writer, TextWriter | PretrainedWriter):
        raise ValueError(
            f"{options.model} holds {a_type(writer)}; expected a TextWriter, which "
            "npformer train BOOK.txt makes, or a folder of GPT-2. Other models: npformer predict"
        )
    if options.ranks.rank:
        return 0  # only the first writes
    tokenizer = writer.tokenizer if isinstance(writer, PretrainedWriter) else writer.tokenizer_
    if unknown := tokenizer.unknown_in(options.prompt):
        warnings.warn(
            f"the model was not trained on {', '.join(map(repr, unknown))}: it knows nothing of "
            "these characters",
            stacklevel=2,
        )
    with use_precision(options.precision, options.backend):
        choice = {n: getattr(options, n) for n in ("temperature", "top_k", "top_p", "seed")}
        pieces = writer.stream(options.prompt, options.tokens, **choice)
        sys.stdout.write(options.prompt.removeprefix("\n"))
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
