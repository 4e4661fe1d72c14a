"""Commands of the command line: how one is added, types of its options, and checks of values."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.cli.embedded import FILE_NAMES, embedded_file
from npformer.cli.parser import Parser
from npformer.core import checks, split_names
from npformer.core.support.wording import did_you_mean
from npformer.data.pairs import PAIRS
from npformer.data.series import SERIES_FILES
from npformer.data.tables import SUFFIXES
from npformer.optim import NORMS_AND_BIASES
from npformer.tasks.sources.file_kinds import TEXT_FILES, is_data_file
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.storage.outputs import check_not_read, check_place

Commands = argparse._SubParsersAction
"""What takes the parsers of commands, or of a command's actions."""


def add_command(
    commands: "Commands[Parser]",
    name: str,
    *,
    summary: str,
    epilog: str = "",
    run: Callable[[argparse.Namespace], int] | None = None,
) -> Parser:
    """Add a command and return its parser.

    `summary` is a phrase for the list of commands. `run` runs the command; None: its actions do.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # a later option could make an abbreviation ambiguous
    )
    parser.set_defaults(parser=parser)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def mark_options_not_typed(
    parser: Parser, remembered: Sequence[str], switches: Sequence[str]
) -> None:
    """Give options that nobody typed the value None, because a run that goes on has its own.

    Their defaults become the option `defaults`, and stay in the help. Switches have none. Call it
    before `Parser.show_first`.
    """
    defaults = {name: parser.get_default(name) for name in remembered}
    for action in parser._actions:
        if action.dest in defaults and action.help:
            action.help = action.help.replace("%(default)s", str(action.default))
    parser.set_defaults(defaults=defaults, **dict.fromkeys([*remembered, *switches]))


# Types: numbers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """The type of an option that is a number: `convert` reads it, `check` refuses wrong ones.

    All numbers of a command line are checked together, after it has been read.
    """

    convert: Callable[[str], int | float | str]
    check: Callable[[str, Any], object]

    def __call__(self, word: str) -> int | float | str:
        """Return the number that a word names."""
        return self.convert(word)

    def __repr__(self) -> str:
        """Return what the parser calls the type: "int"."""
        return self.convert.__name__


def check_above_0(name: str, value: object) -> float:
    """Return `value` as a float after checking that it is finite and above 0."""
    return checks.number(name, value, above=0.0)


def workers(word: str) -> int | str:
    """Return a number of workers, or "auto"."""
    if word == "auto":
        return word
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a whole number nor 'auto'") from None


POSITIVE_INT = Number(int, checks.positive)
INT_FROM_0 = Number(int, checks.not_negative)
POSITIVE_FLOAT = Number(float, check_above_0)
FLOAT_FROM_0 = Number(float, checks.not_negative)
RATE = Number(float, checks.rate)
WORKERS = Number(workers, checks.positive)


def check_numbers(options: argparse.Namespace) -> None:
    """Check that the numbers that were typed are in range, before anything is read."""
    for action in options.parser._actions:
        value = getattr(options, action.dest, None)
        if isinstance(action.type, Number) and isinstance(value, int | float):
            action.type.check(action.option_strings[-1], value)


# Types: names, files and folders ------------------------------------------------------------------


def file_or_folder(word: str) -> Path:
    """Return the path that a word names."""
    if word in ("", "-"):
        what = "standard input" if word else "empty"
        raise argparse.ArgumentTypeError(f"{word!r} is {what}; expected a name of a file or folder")
    return Path(word)


def output_path(word: str) -> Path:
    """Return the path that a word names, of a file that is to be written."""
    return file_or_folder(word)


def task_or_file(word: str) -> str:
    """Return a word that is a task, or names a file of a known kind."""
    path = Path(word)
    if word in FILE_NAMES and not path.exists():
        return str(embedded_file(word))
    known = [*RECIPES, *FILE_NAMES, *PAIRS]
    if word == "-" or word in known or path.exists() or is_data_file(path):
        return word
    raise argparse.ArgumentTypeError(
        f"{word!r} is neither a task nor a file; expected one of {', '.join(known)}, or a file "
        f"ending in {', '.join((*SUFFIXES, *TEXT_FILES, *SERIES_FILES))}{did_you_mean(word, known)}"
    )


def patterns(words: str) -> list[str]:
    """Return the patterns that --no-decay names."""
    return list(NORMS_AND_BIASES) if words == "norms-and-biases" else split_names(words)


# Files that are written ---------------------------------------------------------------------------

EXAMPLES = {"json": "speeds.json", "report": "report.txt", "export": "page.html"}
"""Examples of files that some options write, by the option; others write tables or pages."""


def check_outputs(options: argparse.Namespace) -> None:
    """Check that what a command writes replaces nothing, before anything is read.

    With --overwrite it may replace a file, but none that the command reads.
    """
    for action in options.parser._actions:
        path = getattr(options, action.dest, None)
        if action.type is output_path and path is not None:
            example = EXAMPLES.get(action.dest, "answers.csv")
            check_not_read(action.option_strings[-1], path, files_named(options, action.dest))
            check_place(path, example, overwrite=options.overwrite)


def files_named(options: argparse.Namespace, output: str) -> list[Path]:
    """Return the files that a command line names, also by their folder, but not by `output`."""
    files: list[Path] = []
    for name, value in vars(options).items():
        for word in value if isinstance(value, list) else [value]:
            if name == output or not isinstance(word, str | Path):
                continue
            files += [*Path(word).iterdir()] if os.path.isdir(word) else [Path(word)]  # noqa: PTH112 - takes texts of any length
    return files
