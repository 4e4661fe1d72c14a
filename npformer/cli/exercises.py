"""npformer exercises: write exercises, mark them, give hints, show solutions."""

import argparse
import shutil
import textwrap
from pathlib import Path
from typing import Any

from npformer.cli.options import POSITIVE_FLOAT, Commands, add_command, file_or_folder
from npformer.cli.parser import Parser


def _place(options: argparse.Namespace) -> tuple[Path, list[str]]:
    """Return the folder and the names; the first word is a name if there is no such folder."""
    from npformer.learn.exercises import folder
    from npformer.learn.exercises.table import named

    place, names = Path(options.folder), options.name
    if not place.is_dir():
        place, names = folder.place_of(options.folder), [options.folder, *names]
    folder.check_folder(place)
    return place, list(dict.fromkeys(map(named, names)))


def _start(options: argparse.Namespace) -> int:
    from npformer.learn.exercises import folder
    from npformer.learn.exercises.table import named

    names = [named(name) for name in options.name]
    lines = folder.start(options.folder, names, options.notebooks, options.force)
    print("\n".join(lines))
    print(f"Read {options.folder / 'README.md'}, and begin with the first file.")
    return 0


def _check(options: argparse.Namespace) -> int:
    from npformer.learn.exercises import process
    from npformer.learn.exercises.referee import PASSED
    from npformer.learn.exercises.table import NAMES, stem

    place, names = _place(options)
    names = names or list(NAMES)
    states = {}
    width = max(map(len, map(stem, names)))
    verdicts = process.check(place, names, options.seconds)  # one after the other
    for name, (path, verdict) in zip(names, verdicts, strict=True):
        label = stem(name) if path is None or path.suffix == ".py" else path.name
        _print_verdict(f"{label:<{width}}  ", verdict)
        states[name] = verdict.state
    left = [name for name, state in states.items() if state not in PASSED]
    if len(names) > 1:
        print(f"\n{len(names) - len(left)} of {len(names)} are right.", end="")
        print(f" Next: {stem(left[0])}" if left else "")
    return 1 if left else 0


def _print_verdict(label: str, verdict: Any) -> None:
    """Print a line, and below it what is wrong and what the file printed."""
    first, *rest = verdict.says or [""]
    line = f"{verdict.state}{': ' if first else ''}{first}"
    columns = max(60, min(shutil.get_terminal_size((100, 24)).columns, 100))
    below = " " * len(label)
    lines = textwrap.TextWrapper(columns, break_long_words=False, break_on_hyphens=False)
    lines.initial_indent, lines.subsequent_indent = label, f"{below}  "
    for text in [line, *rest]:
        print(lines.fill(text), flush=True)
        lines.initial_indent = below
    for text in verdict.printed.splitlines():
        print(f"{below}| {text}", flush=True)


def _hint(options: argparse.Namespace) -> int:
    from npformer.learn.exercises.folder import next_hint
    from npformer.learn.exercises.table import exercise

    place, names = _place(options)
    if len(names) != 1:
        raise ValueError(f"{len(names)} exercises are named; expected one, as in: hint 5")
    name = names[0]
    number, of, hint = next_hint(place, name)
    print(f"Hint {number} of {of} for {name}:\n{textwrap.fill(hint, 96, break_on_hyphens=False)}")
    if number == of:
        print(f"That was the last one. `npformer exercises solution {name}` shows the solution;")
        print(f"docs/{exercise(name).page} explains it.")
    return 0


def _solution(options: argparse.Namespace) -> int:
    from npformer.learn.exercises.solution import solution
    from npformer.learn.exercises.table import exercise

    print(solution(exercise(options.name)))
    return 0


def _list(options: argparse.Namespace) -> int:
    from npformer.learn.exercises.solution import table
    from npformer.learn.exercises.table import every, stem

    if options.markdown:
        print(table())
        return 0
    width = max(len(stem(one.name)) for one in every())
    for one in every():
        print(f"{stem(one.name):<{width}}  {one.title}")
    return 0


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command, and a parser for each of its actions."""
    parser = add_command(
        commands,
        "exercises",
        summary="practise writing backward passes, which are checked automatically",
        epilog="Begin with: npformer exercises start my_exercises",
    )
    actions = parser.add_subparsers(
        dest="action",
        required=True,
        metavar="ACTION",
        help="what to do; each has a --help",
    )
    _add_start(actions)
    _add_check(actions)
    _add_hint(actions)
    _add_solution(actions)
    _add_list(actions)


def _add_start(actions: "Commands[Parser]") -> None:
    parser = add_command(actions, "start", summary="write the exercises into a folder", run=_start)
    parser.add_argument(
        "folder",
        metavar="DIR",
        type=file_or_folder,
        help="target folder; created if it does not exist",
    )
    _add_names(parser, default="all")
    parser.add_argument("--notebooks", action="store_true", help="write notebooks (.ipynb)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="restore the named exercises even if you changed them; your versions are kept "
        "beside them",
    )


def _add_check(actions: "Commands[Parser]") -> None:
    parser = add_command(
        actions,
        "check",
        summary="check your solutions",
        epilog="The exit status is 0 if all the named exercises are right, and 1 otherwise.",
        run=_check,
    )
    _add_folder(parser)
    _add_names(parser, default="all")
    parser.add_argument(
        "--seconds",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="seconds that a file may run (default: 20, or 60 if it trains a model)",
    )


def _add_hint(actions: "Commands[Parser]") -> None:
    parser = add_command(
        actions, "hint", summary="give a hint; ask again for the next one", run=_hint
    )
    _add_folder(parser)
    _add_names(parser)


def _add_solution(actions: "Commands[Parser]") -> None:
    parser = add_command(
        actions, "solution", summary="print a solution and its derivation", run=_solution
    )
    parser.add_argument("name", metavar="NAME", help="an exercise: its name or its number")


def _add_list(actions: "Commands[Parser]") -> None:
    parser = add_command(actions, "list", summary="list all exercises", run=_list)
    parser.add_argument(
        "--markdown", action="store_true", help="print a Markdown table, as in docs/exercises.md"
    )


def _add_folder(parser: Parser) -> None:
    """Add the folder, which is optional: inside of it, names alone will do."""
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        default=".",
        help="the folder with the exercises (default: this one)",
    )


def _add_names(parser: Parser, default: str = "") -> None:
    end = f" (default: {default})" if default else ""
    parser.add_argument(
        "name", metavar="NAME", nargs="*", help=f"an exercise: its name or its number{end}"
    )
