"""A reader's folder: its files, and how many hints were taken."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

from npformer.data.json_file import read_json_if_there
from npformer.learn.exercises import notebook
from npformer.learn.exercises.reader_file import file_of, is_changed
from npformer.learn.exercises.table import NAMES, TEXTS, exercise, named, stem
from npformer.training.storage.files import write_whole

HINTS = "hints.json"


def start(
    folder: Path, names: Sequence[str] = (), notebooks: bool = False, force: bool = False
) -> list[str]:
    """Write the files of exercises, by default of all, and return what was done, line by line.

    A file that the reader changed stays as it is, unless `force` is True; then it is kept under
    another name.
    """
    if force and not names:
        raise ValueError(
            "--force writes over a reader's work; expected the names of the exercises to restore. "
            "Write: npformer exercises start DIR NAME --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    ending = ".ipynb" if notebooks else ".py"
    lines = []
    n_written = 0
    for name in names or NAMES:
        path = folder / f"{stem(name)}{ending}"
        if os.path.lexists(path):
            if not is_changed(path, exercise(name)):
                lines.append(f"{path.name} is there already, and unchanged")
                continue
            if not force:
                lines.append(f"{path.name} was changed, so it stays as it is")
                continue
            old = _name_to_keep(path)
            path.rename(old)
            lines.append(f"{path.name} is written anew; what you had is in {old.name}")
        _write_blank(path, name)
        n_written += 1
    if not os.path.lexists(folder / "README.md"):
        _write_readme(folder / "README.md", ending)
    return [*lines, f"{n_written} {'file' if n_written == 1 else 'files'} written to {folder}"]


def _write_blank(path: Path, name: str) -> None:
    """Write the file of an exercise as readers get it: a notebook, if its name ends like one."""
    blank = exercise(name).blank
    text = notebook.from_source(blank, name) if path.suffix == ".ipynb" else blank
    write_whole(path, text.encode(), overwrite=False)


def _name_to_keep(path: Path) -> Path:
    """Return a free name for what a reader had: another one each time."""
    names = chain([f"{path.name}.old"], (f"{path.name}.old{n}" for n in count(2)))
    return next(path.with_name(name) for name in names if not os.path.lexists(path.parent / name))


def _write_readme(path: Path, ending: str) -> None:
    """Write what to do in the folder, and a table of its files."""
    introduction = (TEXTS / "README.md").read_text("utf-8").format(first=NAMES[0])
    rows = [f"| `{stem(name)}{ending}` | {exercise(name).title} |\n" for name in NAMES]
    write_whole(path, "".join([introduction, *rows]).encode(), overwrite=False)


def find(folder: Path, name: str) -> Path | None:
    """Return the file of an exercise, or None.

    If there is a notebook as well: the one that was changed, or the later one if both were.
    """
    return file_of(exercise(name), folder)


def place_of(word: str) -> Path:
    """Return the folder in which to look for an exercise: that of its file, or this one."""
    try:
        named(word)
    except ValueError as error:
        place = f"{word} is not a folder (`npformer exercises start {word}` makes one)"
        message = (
            f"{error} And {place}" if "Did you mean" in str(error) else f"{place}, and {error}"
        )
        raise ValueError(message) from None
    return Path(word).parent


def check_folder(folder: Path) -> None:
    """Check that a folder holds exercises."""
    if not folder.is_dir() or not any(find(folder, name) for name in NAMES):
        what = "holds no exercises" if folder.is_dir() else "is not a folder"
        raise ValueError(f"{folder} {what}; `npformer exercises start {folder}` writes them")


def next_hint(folder: Path, name: str) -> tuple[int, int, str]:
    """Return the number of the next hint, how many there are, and the hint; count it as taken."""
    check_folder(folder)
    hints, hints_taken = exercise(name).hints, _hints_taken(folder)
    number = min(hints_taken.get(name, 0) + 1, len(hints))
    text = json.dumps(hints_taken | {name: number}, indent=1)
    write_whole(folder / HINTS, f"{text}\n".encode())
    return number, len(hints), hints[number - 1]


def _hints_taken(folder: Path) -> dict[str, int]:
    """Return how many hints were taken for each exercise."""
    with suppress(ValueError):  # no JSON, or none of names and values
        counts = read_json_if_there(folder / HINTS)
        if all(name in NAMES and type(n) is int and n >= 0 for name, n in counts.items()):
            return counts
    raise ValueError(f"{folder / HINTS} holds no numbers of hints; delete it, and hints begin anew")
