"""npformer exercises: write exercises, mark them, give hints, show solutions."""

import argparse
import shutil
import textwrap
from pathlib import Path
from typing import Any

from npformer.cli import common

NAME = "an exercise: its name or its number"
DIR = "the folder with the exercises (default: this one)"


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    summary = "write backward passes by hand, marked by a referee"
    epilog = "Begin with: npformer exercises start my_exercises"
    parser = common.add_command(commands, "exercises", _start, summary, epilog)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", help="what to do; each has a --help"
    )
    start = common.add_command(actions, "start", _start, "write the exercises into a folder")
    start.add_argument(
        "folder", type=common.place, metavar="DIR", help="the folder; made if it is missing"
    )
    start.add_argument("name", nargs="*", metavar="NAME", help=f"{NAME} (default: all)")
    common.option(start, "--notebooks", "write notebooks (.ipynb)")
    force = "restore the named ones even if you changed them; yours are kept beside them"
    common.option(start, "--force", force)

    check = common.add_command(actions, "check", _check, "mark what you wrote")
    _takes(check, f"{NAME} (default: all)")
    seconds = "how long a file may run (default: 20, and 60 where a model is trained)"
    common.option(check, "--seconds X", seconds)
    check.epilog = "The exit status is 0 if all the exercises named are right, and 1 if not."

    hint = common.add_command(actions, "hint", _hint, "give a hint; when asked again, the next one")
    _takes(hint, NAME)

    solution = common.add_command(
        actions, "solution", _solution, "print a solution and its derivation"
    )
    solution.add_argument("name", metavar="NAME", help=NAME)

    listing = common.add_command(actions, "list", _list, "list all exercises")
    common.option(listing, "--markdown", "as the table of docs/exercises.md")


def _takes(parser: argparse.ArgumentParser, about: str) -> None:
    """Accept a folder and names; inside the folder, names alone."""
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help=DIR)
    parser.add_argument("name", nargs="*", metavar="NAME", help=about)


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

    lines = folder.start(
        options.folder, list(map(named, options.name)), options.notebooks, options.force
    )
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
    for name, (path, verdict) in zip(
        names, process.check(place, names, options.seconds), strict=True
    ):
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
    for i, text in enumerate([line, *rest]):
        shown = textwrap.fill(
            text,
            columns,
            initial_indent=below if i else label,
            subsequent_indent=f"{below}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        print(shown, flush=True)
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
