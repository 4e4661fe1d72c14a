"""The folder of a training that can be continued: one file, and a lock while a training runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import a_type, checks
from npformer.training.storage.files import check_writable, remove_unfinished
from npformer.training.storage.model_file import (
    CheckpointError,
    check_keys,
    is_npformers,
    read_model_file,
    write_model_file,
)

CHECKPOINT = "checkpoint.safetensors"
"""The file of a training's state, in its folder."""

KIND = "Checkpoint"

ARRAY = "npformer.array"
"""Stands for an array in the values of a checkpoint, with its name."""

DTYPES = {np.dtype(code) for code in np.typecodes["AllInteger"] + "?efd"}
"""Dtypes of the arrays that a checkpoint may hold."""

SECTIONS = {"model", "optimizer", "generators", "history", "progress", "settings", "notes"}
"""What the description of a checkpoint has, besides its format and class."""

WAIT = 3.0
"""Seconds to wait for a lock: a process that is being killed may hold it for a moment."""


class FolderInUseError(OSError):
    """Another training is writing into the folder."""


@contextmanager
def reserve(folder: Path, n_bytes: int = 0) -> Iterator[None]:
    """Make a folder, check that `n_bytes` can be written there, and lock it against other runs.

    What an interrupted write left behind is removed. The lock ends with the process at the latest.
    Raises OSError, which names the folder, if it cannot be written, and `FolderInUseError` if
    another run has locked it.
    """
    from filelock import FileLock, Timeout

    check_writable(folder, n_bytes)
    try:
        locked = FileLock(folder / ".lock", timeout=WAIT).acquire()
    except Timeout:
        raise FolderInUseError(
            f"{folder} is in use by another training; expected a different folder for each. Wait "
            "until that one ends, or name another folder"
        ) from None
    with locked:
        remove_unfinished(folder / CHECKPOINT)
        yield


def check_replaceable(folder: Path) -> None:
    """Raise FileExistsError if a file in a folder has a checkpoint's name, and is none."""
    path = folder / CHECKPOINT
    if os.path.lexists(path) and not is_npformers(path, KIND):
        raise FileExistsError(
            f"{path} is no checkpoint of a training, and would be replaced; expected another "
            "folder, or none of its kind there"
        )


def read(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint in a folder, its sections by name; None if there is none.

    Raises CheckpointError if there is one that cannot be used.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    values, arrays = read_model_file(path)
    if values.get("class") != KIND:
        raise CheckpointError(
            f"{path} holds a {values.get('class')}; expected a {KIND}, as fit(checkpoint=...) "
            "writes. A model alone is read by npformer.load"
        )
    check_keys(path, values, {"class", *SECTIONS})
    try:
        return {name: _insert_arrays(values[name], arrays) for name in sorted(SECTIONS)}
    except (KeyError, TypeError) as error:  # what should name an array may be a list
        raise CheckpointError(f"{path} does not have {error}: was it edited?") from error


@contextmanager
def explain_damage(folder: Path, *errors: type[Exception]) -> Iterator[None]:
    """Turn such errors, raised while a checkpoint's sections are restored, into CheckpointError."""
    try:
        yield
    except CheckpointError:
        raise
    except errors as error:  # a file may say anything
        raise CheckpointError(
            f"{folder / CHECKPOINT} does not hold the state of a training "
            f"({type(error).__name__}: {error}): was it edited?"
        ) from error


def write(folder: Path, sections: Mapping[str, Any]) -> None:
    """Replace the checkpoint in a folder, atomically; an OSError names the file.

    Sections are values for JSON, with arrays among them at any depth.
    """
    arrays: dict[str, np.ndarray] = {}
    values = {name: _extract_arrays(value, name, arrays) for name, value in sections.items()}
    write_model_file(folder / CHECKPOINT, {"class": KIND, **values}, arrays)


def _extract_arrays(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value in which each array is replaced by its name, under which it is in `arrays`."""
    if isinstance(value, np.ndarray):
        if value.dtype.newbyteorder("=") not in DTYPES:
            raise TypeError(
                f"{path} has dtype {value.dtype}; expected numbers or bool: a checkpoint holds no "
                "other arrays"
            )
        while path in arrays:  # a name in a mapping may have dots
            path += "+"
        arrays[path] = value
        return {ARRAY: path}
    if isinstance(value, Mapping):
        return {n: _extract_arrays(item, f"{path}.{n}", arrays) for n, item in value.items()}
    if isinstance(value, list | tuple):
        return [_extract_arrays(item, f"{path}.{k}", arrays) for k, item in enumerate(value)]
    if not isinstance(value, str | int | float | None):
        raise TypeError(
            f"{path} is {a_type(value)}; expected texts, numbers, True, False, None, NumPy "
            "arrays, and lists and mappings of them"
        )
    return value


def _insert_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return a value with its arrays back in their places."""
    if isinstance(value, dict):
        if set(value) == {ARRAY}:
            return arrays[value[ARRAY]]
        return {name: _insert_arrays(item, arrays) for name, item in value.items()}
    return [_insert_arrays(item, arrays) for item in value] if isinstance(value, list) else value


def checked_folder(name: str, folder: str | os.PathLike[str]) -> Path:
    """Return a folder's path; raises TypeError or ValueError for anything else."""
    path = checks.path(name, folder)
    if path.suffix == ".safetensors":
        raise ValueError(
            f"{name} is {str(path)!r}, a file's name; expected a folder, in which "
            f"{CHECKPOINT} is written"
        )
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{name} is {str(path)!r}, which is a file; expected a folder")
    return path
