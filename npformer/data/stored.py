"""Arrays that stay in files: memory-mapped arrays, and arrays with rows in several files."""

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

from npformer.core import checks, describe
from npformer.data.lists import check_list
from npformer.data.text_file import check_file

MOST_OPEN = 64
"""Files of an array that are open at the same time; the system limits the number for a process."""


class ShardedArray:
    """An array whose rows are in several .npy files, one file after the other.

    ``array[rows]`` reads rows, a slice or numbers, and returns a NumPy array. ``array[:, 1:]``
    reads nothing, and returns a ShardedArray with only these columns. `sharded` makes one.

    Attributes
    ----------
    files : tuple of Path
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        first = _map_file(self.files[0])
        self.dtype = first.dtype
        self._row_shape = first.shape[1:]  # in the files
        n_rows = []
        for file in self.files:
            array = _map_file(file)
            if array.shape[1:] != self._row_shape or array.dtype != self.dtype:
                raise ValueError(
                    f"{file} has rows of shape {array.shape[1:]} and dtype {array.dtype}, and "
                    f"{self.files[0]} has {self._row_shape} and {self.dtype}; expected the same "
                    "in all files"
                )
            n_rows.append(len(array))
        self._stops = np.cumsum(n_rows)
        self.shape = (int(self._stops[-1]), *self._row_shape)
        self._row_numbers = np.arange(len(self))
        self._columns: tuple[slice, ...] = ()  # empty: all columns
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
            return self._select_columns(rows[1])
        try:
            numbers = self._row_numbers[rows]
            if numbers.ndim > 1:
                raise IndexError("it has more than one axis")
        except IndexError as error:
            raise IndexError(
                f"{self!r} is read by {describe(rows)}: {error}; expected rows from 0 to "
                f"{len(self) - 1}, a slice, whole numbers or {len(self)} booleans: array[rows], or "
                "columns: array[:, 1:]"
            ) from None
        if numbers.ndim == 0:
            return self[numbers.reshape(1)][0]
        result = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        file_numbers = np.searchsorted(self._stops, numbers, side="right")
        for k in np.unique(file_numbers).tolist():
            is_in_file = file_numbers == k
            file_rows = self._file(k)
            start = int(self._stops[k]) - len(file_rows)
            chosen_rows = file_rows[numbers[is_in_file] - start]
            result[is_in_file] = chosen_rows[:, *self._columns]
        return result

    def _chooses_columns(self, *index: Any) -> bool:
        """Return whether an index is [:, a slice], and columns have not been chosen before."""
        two_slices = len(index) == 2 and all(type(axis_index) is slice for axis_index in index)
        if not two_slices or index[0] != slice(None):
            return False
        return self.ndim > 1 and not self._columns

    def _select_columns(self, columns: slice) -> ShardedArray:
        """Return the array with only these columns of each row."""
        other = copy(self)
        other._open = OrderedDict()
        other._columns = (columns,)
        n_columns = len(range(*columns.indices(self.shape[1])))
        other.shape = (len(self), n_columns, *self.shape[2:])
        return other

    def _file(self, k: int) -> np.ndarray:
        """Return the rows of the k-th file, memory-mapped; close the least recently used file."""
        if k not in self._open:
            mapped = _map_file(self.files[k])
            start = int(self._stops[k - 1]) if k else 0
            expected = (int(self._stops[k]) - start, *self._row_shape)
            if mapped.shape != expected or mapped.dtype != self.dtype:
                raise ValueError(
                    f"{self.files[k]} has shape {mapped.shape} and dtype {mapped.dtype}, and had "
                    f"{expected} and {self.dtype} before; expected a file that does not change"
                )
            self._open[k] = mapped
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(k)
        return self._open[k]


def sharded(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> ShardedArray:
    """Return the rows of several .npy files as one array; rows are read only when it is indexed.

        x, y = npformer.data.sharded("train/x-*.npy"), npformer.data.sharded("train/y-*.npy")
        npformer.fit(model, (x, y))

    Parameters
    ----------
    files : str, or list of paths
        A pattern as in `glob.glob`, whose files are sorted by name, with numbers by value: x-2
        before x-10. Or the files themselves, in this order. All must have the same dtype, and the
        same shape except for the number of rows.

    Raises
    ------
    FileNotFoundError
        No file matches the pattern, or one of the list does not exist.
    ValueError
        A file is not a .npy file, or its rows have another shape or dtype than those of the first.
    """
    if isinstance(files, str | os.PathLike):
        pattern = os.fspath(files)
        matches = [Path(name) for name in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - pathlib takes no absolute pattern
        if not matches:
            raise FileNotFoundError(
                f"no file matches {describe(pattern)}; expected .npy files. The pattern is "
                f"relative to {Path.cwd()}"
            )
        return ShardedArray(sorted(matches, key=_natural_sort_key))
    paths = check_list("files", files, "a path for each file, or a pattern such as 'train/x-*.npy'")
    if not paths:
        raise ValueError("files is an empty list; expected at least one .npy file")
    return ShardedArray([checks.path(f"files[{i}]", path) for i, path in enumerate(paths)])


def files_of(arrays: Iterable[Any]) -> list[Path]:
    """Return the files that hold the rows of arrays."""
    files: list[Path] = []
    for array in arrays:
        if isinstance(array, ShardedArray):
            files += array.files
        elif isinstance(array, np.memmap) and array.filename is not None:
            files.append(Path(array.filename))
    return files


def read(array: Any, rows: Any) -> Any:
    """Return rows of an array, which may be in files, as a plain NumPy array; None for None."""
    return None if array is None else np.asarray(array[rows])


def _natural_sort_key(path: Path) -> tuple[list[Any], str]:
    """Return a key that sorts paths by name with numbers by value, and 1 and 01 by name."""
    texts_and_numbers = re.split(r"(\d+)", str(path))
    key = [int(text) if k % 2 else text for k, text in enumerate(texts_and_numbers)]
    return key, str(path)


def _map_file(file: Path) -> np.ndarray:
    """Return the array of a .npy file, memory-mapped, with at least one axis."""
    check_file(file)
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{file} cannot be read as a .npy file of numbers ({error}); expected one that "
            "numpy.save wrote"
        ) from error
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        content = "a single number" if isinstance(array, np.ndarray) else "an archive of arrays"
        raise ValueError(f"{file} holds {content}; expected a .npy file with an entry per sample")
    return array
