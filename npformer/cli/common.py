"""What commands share: a short way to write options, and the options that several of them have."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from npformer.cli.parser import Parser
from npformer.core import PRECISIONS, backends, checks, get_backend, split_names
from npformer.optim import NORMS_AND_BIASES

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended
TERMINATED = 143  # and for one that SIGTERM ended

STATUS = {"interrupted": INTERRUPTED, "terminated": TERMINATED}
"""Exit statuses by `History.stopped`."""


def place(word: str) -> Path:
    """Return the path that a word names."""
    if word in ("", "-"):
        what = "standard input" if word else "empty"
        raise argparse.ArgumentTypeError(f"{word!r} is {what}; expected a name of a file or folder")
    return Path(word)


TYPES = {"N": int, "X": float, "P": float, "FILE": place, "DIR": place}
"""The type of an option's value, by the word that stands for the value in the help."""


RANGES: Any = {"N": checks.positive, "P": checks.rate, "X": partial(checks.number, above=0.0)}
"""What numbers of each type must be."""
MAY_BE_0 = {"seed", "ngrams", "weight_decay", "temperature"}


def check_numbers(options: argparse.Namespace) -> None:
    """Check that the numbers that were typed are in range, before anything is read."""
    for action in options.parser._actions:
        value, kind = getattr(options, action.dest, None), str(action.metavar)
        if isinstance(value, int | float) and kind in RANGES:
            check = checks.not_negative if action.dest in MAY_BE_0 else RANGES[kind]
            check(action.option_strings[-1], value)


@contextmanager
def warnings_in_words(command: str) -> Iterator[None]:
    """Print warnings as errors are printed, without the line of code that Python adds."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                print(f"npformer {command}: warning: {message}", file=sys.stderr)
            else:
                usual(message, category, *rest, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        yield


def add_command(
    commands: Any, name: str, run: Callable[..., int], summary: str, epilog: str = ""
) -> Parser:
    """Add a command, and return the parser of its options."""
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # a later option could make an abbreviation ambiguous
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def option(group: Any, words: str, text: str, default: Any = None, **settings: Any) -> None:
    """Add an option, such as "--epochs N", or a switch; `TYPES` gives its type.

    The help ends with the default.
    """
    flag, _, metavar = words.partition(" ")
    if metavar:
        settings = {"metavar": metavar, "type": TYPES.get(metavar, str), **settings}
    elif "choices" not in settings:
        settings.setdefault("action", "store_true")
    if default is not None:
        settings["default"] = default
        text += f" (default: {default})"
    group.add_argument(flag, help=text, **settings)


def add_model(parser: argparse.ArgumentParser, *, predicts: bool = True) -> None:
    """Add the argument that names a trained model, and --batch-size if it predicts."""
    parser.add_argument(
        "model", type=place, metavar="MODEL", help="a .safetensors file or a folder"
    )
    if predicts:
        option(parser, "--batch-size N", "samples that each process computes at a time", 256)


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Add --backend and --precision."""
    where = "where to compute: numpy is the CPU, cupy an NVIDIA GPU"
    option(parser, "--backend", where, "numpy", choices=backends())
    products = "of matrix products on a GPU: tf32 is faster, with 3 digits"
    option(parser, "--precision", products, "float32", choices=PRECISIONS)


def device_of(options: argparse.Namespace) -> str:
    """Return where a command computes, in words."""
    device = get_backend(options.backend).device()
    if options.ranks.size > 1:
        device = f"{options.ranks.size} ranks, the first on {device}"
    return device if options.precision == "float32" else f"{device}, products in TF32"


def add_plugin(parser: argparse.ArgumentParser) -> None:
    """Add --plugin."""
    text = "a module or .py file to import first, whose names can then be used; can be repeated"
    option(parser, "--plugin MODULE", f"{text} (docs/extending.md)", action="append")
    parser.set_defaults(plugin=[])


def counted(n: int, kind: str) -> str:
    """Return "1 text", "2 texts", "1 series"."""
    return f"{n:,} {kind if n != 1 or kind.endswith('series') else kind.removesuffix('s')}"


def one_line(text: str, most: int) -> str:
    """Return the beginning of a text for a terminal: one line, without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def patterns_of(words: str) -> list[str]:
    """Return the patterns that --no-decay names."""
    return list(NORMS_AND_BIASES) if words == "norms-and-biases" else split_names(words)
