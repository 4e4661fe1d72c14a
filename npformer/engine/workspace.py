"""Memory that is used again from one step to the next.

Asking the system for a large array costs more than filling it: every page is fetched, cleared and
given back a moment later. CuPy keeps a pool of memory for that reason, and NumPy has none. This is
one: it lends arrays, and what it lent comes back when nobody holds it any more.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from npformer.core import Array, backend_of

SMALL = 1 << 16
"""Bytes below which an array is simply made: the C library keeps such small pieces itself."""

LINE = 64
"""Arrays begin at a multiple of this many bytes: a cache line, and the widest vector register."""


class _Lease:
    """Who holds an array that was lent: its base. When the last view of it dies, so does this."""

    __slots__ = ("__array_interface__", "_block", "_home")

    def __init__(
        self, block: _Block, home: list[_Block], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._block = block
        self._home = home
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._home.append(self._block)  # one operation of a list: safe from any thread


class _Block:
    """A piece of memory, and where in it arrays begin."""

    __slots__ = ("address", "memory")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size + LINE, dtype=np.uint8)
        address = self.memory.__array_interface__["data"][0]
        self.address = address + -address % LINE


_HOST = np.empty(0)


class Workspace:
    """Lends arrays and takes them back by itself, once nobody holds them or a view of them.

    So an array that a caller keeps is never overwritten by a later call, and nothing has to be
    given back by hand. Threads may ask at once, but not during `tidy`.

    Attributes
    ----------
    n_bytes : int
        Memory that it holds, lent or free.

    Notes
    -----
    Blocks are of a few sizes, eight between a power of two and the next, so that batches of
    changing length share them. `tidy`, called once a step, lets go of blocks that nobody asked for
    in some steps.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[_Block]] = {}
        self._least: dict[int, int] = {}  # free blocks of a size at the fullest moment since tidy
        self._calls = 0
        self._making = threading.Lock()
        self.n_bytes = 0

    def empty(self, shape: tuple[int, ...], near: Array, dtype: Any = None) -> Array:
        """Lend an array, C-contiguous and not initialised.

        Parameters
        ----------
        shape : tuple of int
        near : array
            Gives the backend, and the dtype if that is not given. CuPy has a pool of its own.
        dtype : dtype, optional
        """
        dtype = near.dtype if dtype is None else np.dtype(dtype)
        if type(near) is not np.ndarray:
            return backend_of(near=near).module.empty(shape, dtype=dtype)
        size = math.prod(shape) * dtype.itemsize
        if size < SMALL:
            return np.empty(shape, dtype)
        step = 1 << (size.bit_length() - 4)
        size = -(-size // step) * step
        free = self._free.get(size)
        if free is None:
            free = self._free.setdefault(size, [])  # the same list for all threads
        try:
            block = free.pop()
        except IndexError:
            block = _Block(size)
            with self._making:
                self.n_bytes += size
        if len(free) < self._least.get(size, size):
            self._least[size] = len(free)
        return np.asarray(_Lease(block, free, shape, dtype))

    def zeros(self, size: int, dtype: Any) -> Array:
        """Lend a vector of zeros.

        Parameters
        ----------
        size : int
        dtype : dtype
        """
        vector = self.empty((size,), _HOST, dtype)
        vector[...] = 0.0
        return vector

    def tidy(self, patience: int = 8) -> None:
        """Let go of memory that nobody asked for in the last `patience` calls.

        Parameters
        ----------
        patience : int
        """
        self._calls += 1
        if self._calls < patience:
            return
        self._calls = 0
        for size, free in self._free.items():
            for _ in range(min(self._least.get(size, len(free)), len(free))):
                free.pop()
                self.n_bytes -= size
        self._least.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        return Workspace()  # memory is nobody's property: a copy begins with none

    def __reduce__(self) -> Any:
        return Workspace, ()
