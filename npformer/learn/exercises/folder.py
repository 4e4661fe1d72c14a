"""A reader's folder: its files, and how many hints were taken."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from npformer.data.json_file import read_json_if_there
from npformer.learn.exercises import notebook
from npformer.learn.exercises.referee import is_untouched
from npformer.learn.exercises.table import NAMES, TEXTS, exercise, named, stem

ENDINGS = ".py", ".ipynb"
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
    said, written = [], 0
    for name in names or NAMES:
        path = folder / f"{stem(name)}{ending}"
        blank = exercise(name).blank
        if path.exists():
            if not _is_changed(path, name):
                said.append(f"{path.name} is there already, and unchanged")
                continue
            if not force:
                said.append(f"{path.name} was changed, so it stays as it is")
                continue
            old = path.with_name(f"{path.name}.old")
            path.replace(old)
            said.append(f"{path.name} is written anew; what you had is in {old.name}")
        text = notebook.from_source(blank, name) if notebooks else blank
        path.write_text(text, "utf-8", newline="\n")
        written += 1
    readme = folder / "README.md"
    if not readme.exists():
        rows = [f"| `{stem(name)}{ending}` | {exercise(name).title} |\n" for name in NAMES]
        text = (TEXTS / "README.md").read_text("utf-8").format(first=NAMES[0])
        readme.write_text("".join([text, *rows]), "utf-8", newline="\n")
    return [*said, f"{written} {'file' if written == 1 else 'files'} written to {folder}"]


def _is_changed(path: Path, name: str) -> bool:
    """Whether a file is not the one that was handed out, or cannot be read."""
    try:
        return not is_untouched(exercise(name), source_of(path)[0])
    except ValueError:
        return True


def source_of(path: Path) -> tuple[str, list[str] | None]:
    """Return the source of a file or notebook, and what to call its lines.

    Raises ValueError if it is neither.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not text in UTF-8; save it as UTF-8") from None
    return notebook.to_source(text, path.name) if path.suffix == ".ipynb" else (text, None)


def find(folder: Path, name: str) -> Path | None:
    """Return the file of an exercise, or None.

    If there is a notebook as well: the one that was changed, or the later one if both were.
    """
    paths = [folder / f"{stem(name)}{ending}" for ending in ENDINGS]
    paths = [path for path in paths if path.is_file()]
    changed = [path for path in paths if _is_changed(path, name)]
    return max(changed or paths, key=lambda path: path.stat().st_mtime, default=None)


def place_of(word: str) -> Path:
    """Return the folder in which to look for an exercise: that of its file, or this one."""
    try:
        named(word)
    except ValueError as error:
        place = f"{word} is not a folder (`npformer exercises start {word}` makes one)"
        said = f"{error} And {place}" if "Did you mean" in str(error) else f"{place}, and {error}"
        raise ValueError(said) from None
    return Path(word).parent


def check_folder(folder: Path) -> None:
    """Check that a folder holds exercises."""
    if not folder.is_dir() or not any(find(folder, name) for name in NAMES):
        what = "holds no exercises" if folder.is_dir() else "is not a folder"
        raise ValueError(f"{folder} {what}; `npformer exercises start {folder}` writes them")


def next_hint(folder: Path, name: str) -> tuple[int, int, str]:
    """Return the number of the next hint, how many there are, and the hint; count it as taken."""
    check_folder(folder)
    hints, taken = exercise(name).hints, _hints_taken(folder)
    number = min(taken.get(name, 0) + 1, len(hints))
    text = json.dumps(taken | {name: number}, indent=1)
    (folder / HINTS).write_text(f"{text}\n", "utf-8", newline="\n")
    return number, len(hints), hints[number - 1]


def _hints_taken(folder: Path) -> dict[str, int]:
    """Return how many hints were taken for each exercise."""
    with suppress(ValueError):  # no JSON, or none of names and values
        taken = read_json_if_there(folder / HINTS)
        if all(type(n) is int and n >= 0 for n in taken.values()):
            return taken
    raise ValueError(f"{folder / HINTS} holds no numbers of hints; delete it, and hints begin anew")
