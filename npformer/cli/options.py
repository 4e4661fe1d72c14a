"""The parsers of commands, made of the tables in ``commands.toml``."""

import argparse
import importlib.resources
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npformer.cli.parser import Parser
from npformer.cli.speed import WORKLOADS
from npformer.core import INITIALIZERS, PRECISIONS, backends, checks, split_names
from npformer.core.support.words import did_you_mean
from npformer.data.pairs import PAIRS
from npformer.data.tables import SUFFIXES
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models import POSITIONS
from npformer.models.losses import LOSSES
from npformer.models.trainable.metrics import FIGURES
from npformer.optim import NORMS_AND_BIASES, SCHEDULES
from npformer.tasks.sources.kinds import TEXT_FILES, is_data_file
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.storage.outputs import check_not_read, check_place

COMMANDS: dict[str, Any] = tomllib.loads(
    (importlib.resources.files("npformer.cli") / "commands.toml").read_text("utf-8")
)
SHARED, NEXT, EMBEDDED = (COMMANDS.pop(name) for name in ("shared", "next", "embedded"))
FILES = {name: row["file"] for name, row in EMBEDDED.items() if "file" in row}
"""Files that come with the package, by the word that stands for them."""


def place(word: str) -> Path:
    """Return the path that a word names."""
    if word in ("", "-"):
        what = "standard input" if word else "empty"
        raise argparse.ArgumentTypeError(f"{word!r} is {what}; expected a name of a file or folder")
    return Path(word)


def output(word: str) -> Path:
    """Return the path that a word names, of a file that is to be written."""
    return place(word)


def task_or_file(word: str) -> str:
    """Return a word that is a task, or names a file of a known kind."""
    path = Path(word)
    if word in FILES and not path.exists():
        return str(importlib.resources.files("npformer.data").joinpath(FILES[word]))
    known = [*RECIPES, *FILES, *PAIRS]
    if word == "-" or word in known or path.exists() or is_data_file(path):
        return word
    raise argparse.ArgumentTypeError(
        f"{word!r} is neither a task nor a file; expected one of {', '.join(known)}, or a file "
        f"ending in {', '.join((*SUFFIXES, *TEXT_FILES))}, .npz{did_you_mean(word, known)}"
    )


def workers(word: str) -> int | str:
    """Return a number of workers, or "auto"."""
    if word == "auto":
        return word
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a whole number nor 'auto'") from None


def patterns(words: str) -> list[str]:
    """Return the patterns that --no-decay names."""
    return list(NORMS_AND_BIASES) if words == "norms-and-biases" else split_names(words)


TYPES: dict[str, Callable[[str], Any]] = {
    "N": int,
    "X": float,
    "P": float,
    "FILE": place,
    "DIR": place,
    "MODEL": place,
    "output": output,
    "str": str,
    "task": task_or_file,
    "workers": workers,
    "names": split_names,
    "patterns": patterns,
}
"""The type of an option's value, by the word that stands for the value in the help, or by a name
that the table gives."""


def above_0(name: str, value: object) -> float:
    """Return `value` as a float after checking that it is finite and above 0."""
    return checks.number(name, value, above=0.0)


EXAMPLES = {"json": "speeds.json", "report": "report.txt", "export": "page.html"}
"""Names of files that some options of the type "output" may write; others write tables or pages."""


def check_outputs(options: argparse.Namespace) -> None:
    """Check that what a command writes replaces nothing, before anything is read.

    With --overwrite it may replace a file, but none that the command reads.
    """
    for action in options.parser._actions:
        path = getattr(options, action.dest, None)
        if action.type is output and path is not None:
            example = EXAMPLES.get(action.dest, "answers.csv")
            check_not_read(action.option_strings[-1], path, named_files(options, action.dest))
            check_place(path, example, overwrite=options.overwrite)


def named_files(options: argparse.Namespace, output: str) -> list[Path]:
    """Return the files that a command line names, also by their folder, but not by `output`."""
    files: list[Path] = []
    for name, value in vars(options).items():
        for word in value if isinstance(value, list) else [value]:
            if name == output or not isinstance(word, str | Path):
                continue
            files += [*Path(word).iterdir()] if os.path.isdir(word) else [Path(word)]  # noqa: PTH112 - takes texts of any length
    return files


RANGES: dict[str, Callable[[str, Any], object]] = {
    "N": checks.positive,
    "P": checks.rate,
    "X": above_0,
}
"""What numbers of each type must be."""

MAY_BE_0 = {"seed", "ngrams", "weight_decay", "temperature"}


def check_numbers(options: argparse.Namespace) -> None:
    """Check that the numbers that were typed are in range, before anything is read."""
    for action in options.parser._actions:
        value, kind = getattr(options, action.dest, None), str(action.metavar)
        if isinstance(value, int | float) and kind in RANGES:
            check = checks.not_negative if action.dest in MAY_BE_0 else RANGES[kind]
            check(action.option_strings[-1], value)


CHOICES: dict[str, Any] = {
    "mixers": MIXERS,
    "activations": ACTIVATIONS,
    "ffns": FFNS,
    "poolings": POOLINGS,
    "initializers": INITIALIZERS,
    "losses": LOSSES,
    "schedules": SCHEDULES,
    "positions": POSITIONS,
    "precisions": PRECISIONS,
    "metrics": (*FIGURES, "loss"),
    "norms": NORMS,
    "backends": backends(),
    "embedded": [*EMBEDDED],
}
"""What is one of several names."""

TEXTS = {
    **{kind: ", ".join(names) for kind, names in CHOICES.items()},
    "tasks": "\n".join(f"  {recipe.name:<14} {recipe.summary}" for recipe in RECIPES.values()),
    "pairs": "\n".join(f"  {name:<14} pairs: {what}" for name, what in PAIRS.items()),
    "files": "\n".join(f"  {name:<14} {EMBEDDED[name]['what']}" for name in FILES),
    "workloads": "\n".join(
        f"  {name}  batch {batch}, length {config.max_len}, d_model {config.d_model}, "
        f"d_ff {config.d_ff}, {config.n_layers} layers"
        for name, (batch, config) in WORKLOADS.items()
    ),
}
"""What stands in the help for names in braces."""


def add_command(
    commands: Any, name: str, run: Callable[..., int], about: dict[str, Any] | None = None
) -> Parser:
    """Add a command, and return its parser; `about` is its table."""
    about = COMMANDS[name] if about is None else about
    summary: str = about["summary"]
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=about.get("epilog", "").format_map(TEXTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # a later option could make an abbreviation ambiguous
    )
    parser.set_defaults(run=run, parser=parser)
    _add(parser, about)
    if "actions" in about:
        actions = parser.add_subparsers(
            dest="action",
            required=True,
            metavar="ACTION",
            help="what to do; each has a --help",
        )
        for action, inner in about["actions"].items():
            add_command(actions, action, run, inner)
    if "often" in about:
        parser.show_first(*about["often"])
    if names := about.get("remembers", []):
        usual = {name: parser.get_default(name) for name in names}
        parser.set_defaults(usual=usual, **dict.fromkeys((*names, *about["optional"])))
    return parser


def _add(group: Any, about: dict[str, Any]) -> None:
    """Add all that a table says a command takes."""
    for row in about.get("takes", []):
        if isinstance(row, str):
            title = SHARED[row].get("title")
            _add(group.add_argument_group(title) if title else group, SHARED[row])
        else:
            _add_row(group, *row)
    group.set_defaults(**about.get("defaults", {}))


def _add_row(group: Any, words: str, text: str, given: dict[str, Any] | None = None) -> None:
    """Add an option, such as "--epochs N", a switch, or an argument; its help has its default."""
    flag, _, metavar = words.partition(" ")
    settings, text = dict(given or {}), text.format_map(TEXTS)
    if isinstance(choices := settings.get("choices"), str):
        settings["choices"] = CHOICES[choices]
    if metavar:
        kind = TYPES.get(settings.get("type", metavar), str)
        settings |= {"metavar": metavar, "type": kind}
    elif flag.startswith("-") and choices is None:
        settings["action"] = "store_true"
    if flag.startswith("-") and "default" in settings:
        text += f" (default: {settings['default']})"
    group.add_argument(flag, help=text, **settings)
