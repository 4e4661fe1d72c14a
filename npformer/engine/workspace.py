"""A pool of memory for NumPy arrays, which is reused from one step to the next.

Getting memory for a large array from the system takes longer than filling it, because each page is
mapped and cleared first, and unmapped a moment later. CuPy has its own pool.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, backend_of, is_host_array

SMALL = 1 << 16
"""Arrays of fewer bytes are always new: the C library has a pool for small blocks."""

LARGER = 2
"""How many times as large a block may be as what is asked for, rather than a new one."""

LINE = 64
"""Arrays begin at a multiple of this many bytes: a cache line, or the widest vector register."""


class _Lease:
    """The base of a lent array. It is freed with the last view, and then returns the block."""

    __slots__ = ("__array_interface__", "_block", "_free")

    def __init__(
        self, block: _Block, free: list[_Block], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._block = block
        self._free = free
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._free.append(self._block)  # a single operation: safe from any thread


class _Block:
    """A block of memory, and the address where an array in it begins."""

    __slots__ = ("address", "memory")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size + LINE, dtype=np.uint8)
        address = self.memory.__array_interface__["data"][0]
        self.address = address + -address % LINE


_HOST = np.empty(0)


@dataclass(eq=False)
class Workspace:
    """Lends arrays. Their memory is free again once nobody holds them or a view of them.

    So nothing has to be returned by hand, and an array that a caller keeps is never overwritten by
    a later call. Threads may borrow at the same time, but not during `tidy`.

    Attributes
    ----------
    n_bytes : int
        Memory of the workspace, lent or free.

    Notes
    -----
    There are eight sizes of blocks from one power of two to the next, so that batches of changing
    length share blocks. `tidy`, called once a step, frees those that the last steps did not need.
    """

    n_bytes: int = 0
    _free: dict[int, list[_Block]] = field(default_factory=dict)  # by size
    _unused: dict[int, int] = field(default_factory=dict)  # least count of free blocks since `tidy`
    _calls: int = 0
    _counting: threading.RLock = field(default_factory=threading.RLock)

    def empty(self, shape: tuple[int, ...], reference: Array, dtype: Any = None) -> Array:
        """Lend an array, C-contiguous and uninitialised, or make one on another backend.

        Backend and dtype are those of `reference`, unless `dtype` is given.
        """
        dtype = reference.dtype if dtype is None else np.dtype(dtype)
        if not is_host_array(reference):
            return backend_of(reference=reference).module.empty(shape, dtype=dtype)
        size = math.prod(shape) * dtype.itemsize
        if size < SMALL:
            return np.empty(shape, dtype)
        step = 1 << (size.bit_length() - 4)
        size = -(-size // step) * step
        free = self._free.get(size)
        if free is None:
            free = self._free.setdefault(size, [])  # the same list for all threads
        if not free:
            size, free = self._larger_free_blocks(size)
        try:
            block = free.pop()
        except IndexError:
            block = self._new_block(size)
            with self._counting:
                self.n_bytes += size
        if len(free) < self._unused.get(size, size):
            self._unused[size] = len(free)
        return np.asarray(_Lease(block, free, shape, dtype))

    def _new_block(self, size: int) -> Any:
        """Return a new block of memory."""
        return _Block(size)

    def _larger_free_blocks(self, size: int) -> tuple[int, list[_Block]]:
        """Return the next larger size that has free blocks, up to `LARGER`; else this size."""
        sizes = [other for other in list(self._free) if size < other <= LARGER * size]
        for larger in sorted(sizes):
            if self._free[larger]:
                return larger, self._free[larger]
        return size, self._free[size]

    def zeros(self, size: int, dtype: Any) -> Array:
        """Lend a vector of zeros."""
        vector = self.empty((size,), _HOST, dtype)
        vector[...] = 0.0
        return vector

    def tidy(self, patience: int = 8) -> None:
        """Every `patience` calls, free the memory that was not lent since the last such call."""
        self._calls += 1
        if self._calls < patience:
            return
        self._calls = 0
        for size, free in self._free.items():
            for _ in range(min(self._unused.get(size, len(free)), len(free))):
                free.pop()
                self.n_bytes -= size
        self._unused.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        return Workspace()  # a copy starts without memory

    def __reduce__(self) -> Any:
        return Workspace, ()
