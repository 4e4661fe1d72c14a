"""The file in which a reader solves an exercise: a module or a notebook."""

from pathlib import Path

from npformer.learn.exercises import notebook
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.referee import is_untouched

ENDINGS = ".py", ".ipynb"


def source_of(path: Path) -> tuple[str, list[str] | None]:
    """Return the source of a file or notebook, and what to call its lines.

    Raises ValueError if it is neither.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not text in UTF-8; save it as UTF-8") from None
    return notebook.to_source(text, path.name) if path.suffix == ".ipynb" else (text, None)


def is_changed(path: Path, exercise: Exercise) -> bool:
    """Whether a file is not the one that was handed out, or cannot be read."""
    try:
        source, _ = source_of(path)
    except ValueError:
        return True
    return not is_untouched(exercise, source)


def is_open(path: Path | None) -> bool:
    """Whether the file of an exercise is missing, or has a blank."""
    return path is None or "raise NotImplementedError" in source_of(path)[0]


def file_of(exercise: Exercise, folder: Path) -> Path | None:
    """Return the file of an exercise, or None.

    If there is a notebook as well: the one that was changed, or the later one if both were.
    """
    paths = [folder / f"{exercise.stem}{ending}" for ending in ENDINGS]
    paths = [path for path in paths if path.is_file()]
    changed = [path for path in paths if is_changed(path, exercise)]
    return max(changed or paths, key=lambda path: path.stat().st_mtime, default=None)
