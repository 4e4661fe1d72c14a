"""Arrays that stay in files: memory-mapped ones, and those whose rows lie in several files."""

from __future__ import annotations

import glob
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import checks, described
from npformer.data.lists import listed
from npformer.data.text_file import check_file

AT_ONCE = 64
"""Files of an array that are open at a time: a process may open few, an array may have many."""


class ShardedArray:
    """An array whose rows lie in several .npy files, one after the other.

    ``array[rows]`` reads rows, a slice or numbers, and returns a NumPy array; ``array[:, 1:]``
    reads nothing, and returns one with only these columns. `sharded` makes one.

    Attributes
    ----------
    files : tuple of Path
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        heads = [(each.shape, each.dtype) for each in map(_mapped_file, self.files)]
        first, dtype = heads[0]
        for file, (shape, its_dtype) in zip(self.files, heads, strict=True):
            if shape[1:] != first[1:] or its_dtype != dtype:
                raise ValueError(
                    f"{file} has rows of shape {shape[1:]} and dtype {its_dtype}, and "
                    f"{self.files[0]} has {first[1:]} and {dtype}; expected the same in all files"
                )
        self.dtype = dtype
        self._stops = np.cumsum([shape[0] for shape, _ in heads])
        self.shape = (int(self._stops[-1]), *first[1:])
        self._numbers = np.arange(len(self))
        self._row = first[1:]  # the shape of a row in the files
        self._columns: tuple[slice, ...] = ()  # of those that were chosen
        self._open: OrderedDict[int, np.ndarray] = OrderedDict()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"ShardedArray({len(self.files)} files, shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, tuple) and self._chooses_columns(*rows):
            return self._with_columns(rows[1])
        try:
            wanted = self._numbers[rows]
            if wanted.ndim > 1:
                raise IndexError("it has more than one axis")
        except IndexError as error:
            raise IndexError(
                f"{self!r} is read by {described(rows)}: {error}; expected rows from 0 to "
                f"{len(self) - 1}, a slice, whole numbers or {len(self)} booleans: array[rows], or "
                "columns: array[:, 1:]"
            ) from None
        if wanted.ndim == 0:
            found: np.ndarray = self[wanted.reshape(1)][0]
            return found
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        of_file = np.searchsorted(self._stops, wanted, side="right")
        for k in np.unique(of_file).tolist():
            at, stop = of_file == k, int(self._stops[k])
            rows_of_file = self._file(k)
            some = rows_of_file[wanted[at] - (stop - len(rows_of_file))]
            found[at] = some[:, *self._columns]
        return found

    def _chooses_columns(self, *index: Any) -> bool:
        """Return whether an index is [:, a slice], for the first time."""
        of_slices = [*map(type, index)] == [slice, slice] and index[0] == slice(None)
        return of_slices and self.ndim > 1 and not self._columns

    def _with_columns(self, columns: slice) -> ShardedArray:
        """Return the array with some columns of each row."""
        other = copy(self)
        other._open, other._columns = OrderedDict(), (columns,)
        n = len(range(*columns.indices(self.shape[1])))
        other.shape = (len(self), n, *self.shape[2:])
        return other

    def _file(self, k: int) -> np.ndarray:
        """Return a file's rows, memory-mapped; the least recently used one is closed."""
        if k not in self._open:
            mapped = _mapped_file(self.files[k])
            before = int(self._stops[k - 1]) if k else 0
            expected = (int(self._stops[k]) - before, *self._row)
            if mapped.shape != expected or mapped.dtype != self.dtype:
                raise ValueError(
                    f"{self.files[k]} has shape {mapped.shape} and dtype {mapped.dtype}, and had "
                    f"{expected} and {self.dtype} before; expected a file that does not change"
                )
            self._open[k] = mapped
            if len(self._open) > AT_ONCE:
                self._open.popitem(last=False)
        self._open.move_to_end(k)
        return self._open[k]


def sharded(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> ShardedArray:
    """Return the rows of several .npy files as one array, which is read when rows are asked for.

        x, y = npformer.data.sharded("train/x-*.npy"), npformer.data.sharded("train/y-*.npy")
        npformer.fit(model, (x, y))

    Parameters
    ----------
    files : str, or list of paths
        A pattern as in `glob.glob`, whose files are sorted by name, with numbers by value: x-2
        before x-10. Or the files themselves, in the order given. All have the same dtype and the
        same shape but for the number of rows.

    Raises
    ------
    FileNotFoundError
        No file matches the pattern, or one of the list does not exist.
    ValueError
        A file is not a .npy file, or its rows have another shape or dtype than those of the first.
    """
    if isinstance(files, str | os.PathLike):
        pattern = os.fspath(files)
        found = [Path(name) for name in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - pathlib takes no absolute pattern
        if not found:
            raise FileNotFoundError(
                f"no file matches {described(pattern)}; expected .npy files. The pattern is "
                f"relative to {Path.cwd()}"
            )
        return ShardedArray(sorted(found, key=_by_number))
    given = listed("files", files, "a path for each file, or a pattern such as 'train/x-*.npy'")
    if not given:
        raise ValueError("files is an empty list; expected at least one .npy file")
    return ShardedArray([checks.path(f"files[{i}]", file) for i, file in enumerate(given)])


def files_of(arrays: Iterable[Any]) -> list[Path]:
    """Return the files in which the rows of arrays lie."""
    files: list[Path] = []
    for array in arrays:
        if isinstance(array, ShardedArray):
            files += array.files
        elif isinstance(array, np.memmap) and array.filename is not None:
            files.append(Path(array.filename))
    return files


def read(array: Any, rows: Any) -> Any:
    """Return rows of an array, in files or not, as a plain NumPy array; None for None."""
    return None if array is None else np.asarray(array[rows])


def _by_number(path: Path) -> tuple[list[Any], str]:
    """Return what a file is sorted by: its name, with numbers by value; of equals, as it is."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], str(path)


def _mapped_file(file: Path) -> np.ndarray:
    """Return the array of a .npy file, memory-mapped, with at least one axis."""
    check_file(file)
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{file} cannot be read as a .npy file of numbers ({error}); expected one that "
            "numpy.save wrote"
        ) from error
    if not isinstance(found, np.ndarray) or found.ndim == 0:
        what = "a single number" if isinstance(found, np.ndarray) else "an archive of arrays"
        raise ValueError(f"{file} holds {what}; expected a .npy file with an entry per sample")
    return found
