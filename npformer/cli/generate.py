"""npformer generate: let a language model write, and print the text as it grows."""

import argparse
import sys
import warnings

from npformer.cli.options import (
    FLOAT_FROM_0,
    INT_FROM_0,
    POSITIVE_FLOAT,
    POSITIVE_INT,
    Commands,
    add_command,
)
from npformer.cli.parser import Parser
from npformer.cli.shared_options import add_backend, add_force, add_model, add_plugin
from npformer.cli.trained import Trained
from npformer.core import a_type, use_precision
from npformer.interop import PretrainedWriter, from_pretrained
from npformer.interop.folder import CONFIG
from npformer.tasks.estimators import TextWriter

EPILOG = """\
npformer generate runs/plays-attention 'ROMEO:' --tokens 500 --temperature 0.8

The same seed gives the same text. --temperature 0 always takes the likeliest token."""


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands, "generate", summary="generate text with a language model", epilog=EPILOG, run=run
    )
    add_model(parser)
    parser.add_argument(
        "prompt",
        metavar="BEGINNING",
        nargs="?",
        default="\n",
        help="the text to continue (default: a line break)",
    )
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=POSITIVE_INT,
        default=300,
        help="how many tokens to write (default: %(default)s)",
    )
    parser.add_argument(
        "--temperature",
        metavar="X",
        type=FLOAT_FROM_0,
        default=1.0,
        help="sampling temperature: below 1 sharpens the distribution, above 1 flattens it "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--top-k",
        metavar="N",
        type=POSITIVE_INT,
        help="sample only from the N most likely tokens",
    )
    parser.add_argument(
        "--top-p",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="sample from the smallest set of tokens with this total probability (nucleus "
        "sampling)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=INT_FROM_0,
        default=0,
        help="random seed for sampling (default: %(default)s)",
    )
    add_force(parser)
    add_backend(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print the beginning and what the model writes after it."""
    if (options.model / CONFIG).is_file():  # a folder in Hugging Face's layout
        writer = from_pretrained(options.model).to(options.backend)
    else:
        writer = Trained.load(options, options.model).model
    if not isinstance(writer, TextWriter | PretrainedWriter):
        raise ValueError(
            f"{options.model} holds {a_type(writer)}; expected a TextWriter, which npformer train "
            "BOOK.txt makes, or a folder of GPT-2, Llama or Qwen3. Other models: npformer predict"
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
        stream = writer.stream(
            options.prompt,
            options.tokens,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=options.seed,
        )
        sys.stdout.write(options.prompt.removeprefix("\n"))
        for characters in stream:
            sys.stdout.write(characters)
            sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
