"""The header of a safetensors file, read strictly: what it says must fit itself and the file.

A file is the length of its header in 8 bytes, the header as JSON, and the bytes of the tensors.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np

LARGEST_HEADER = 100_000_000
"""Bytes of JSON; other programs that read safetensors have the same limit."""

DTYPES = {
    **{f"{kind}{bits}": f"<{kind.lower()}{bits // 8}" for kind in "IU" for bits in (16, 32, 64)},
    **{"I8": "i1", "U8": "u1", "BOOL": "?", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
}
"""{name in the file: name in NumPy}."""

MOST_AXES = 32  # of NumPy before version 2
LARGEST = 2**48
"""A bound on offsets, and on sizes of tensors, even where an axis of length 0 makes them empty."""


class Place(NamedTuple):
    """What the header says about a tensor; the offsets count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """A header that is JSON; `table` checks the rest."""

    raw: bytes  # with its length
    metadata: dict[str, str]
    entries: dict[str, Any]
    n_bytes: int  # after the header

    def table(self) -> dict[str, Place]:
        """Return where each tensor lies; a ValueError says what does not fit."""
        table = {name: _place(name, entry) for name, entry in self.entries.items()}
        _check_all_covered(table, self.n_bytes)
        return table

    def views(self, data: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tensors that lie in `data`, the bytes after the header, by name."""
        arrays = {}
        for name, (dtype, shape, begin, _) in self.table().items():
            array = np.ndarray(shape, np.dtype(DTYPES[dtype]), data, begin)
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        return arrays


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an open file, and nothing else; a ValueError says what is wrong."""
    n_bytes = os.fstat(file.fileno()).st_size - 8
    length_bytes = file.read(8)
    length = int.from_bytes(length_bytes, "little")
    if not 2 <= length <= min(n_bytes, LARGEST_HEADER):
        raise ValueError(f"it begins with {length:,} as the length of its header")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise ValueError("its header does not begin with a brace")
    entries = strict_json(text.decode("utf-8"))
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("its metadata are not names and texts")
    return Header(length_bytes + text, metadata, entries, n_bytes - length)


def strict_json(text: str) -> Any:
    """Return what JSON says; a ValueError says what is wrong, also if a name comes twice."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} comes twice")
        found[name] = value
    return found


def _place(name: str, entry: Any) -> Place:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the tensor {name!r} does not have dtype, shape and data_offsets alone")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"the tensor {name!r} has dtype {dtype!r}, which NumPy does not have")
    if not (_whole(shape) and _whole(offsets) and len(offsets) == 2 and len(shape) <= MOST_AXES):
        raise ValueError(f"the tensor {name!r} has a shape or offsets that cannot be")
    size, (begin, end) = math.prod(shape), offsets
    n_bytes = size * np.dtype(DTYPES[dtype]).itemsize
    if end - begin != n_bytes or math.prod(max(n, 1) for n in shape) > LARGEST:
        raise ValueError(f"the tensor {name!r} has {end - begin:,} bytes; expected {n_bytes:,}")
    return Place(dtype, tuple(shape), begin, end)


def _whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n <= LARGEST for n in numbers)


def _check_all_covered(table: Mapping[str, Place], n_bytes: int) -> None:
    """Check that the tensors lie side by side, from the end of the header to that of the file."""
    reached = 0
    for name, place in sorted(table.items(), key=lambda item: item[1][2:]):
        if place.begin != reached:
            raise ValueError(f"the tensor {name!r} begins at {place.begin:,}, not {reached:,}")
        reached = place.end
    if reached != n_bytes:
        raise ValueError(f"{n_bytes:,} bytes follow its header; expected {reached:,}")
