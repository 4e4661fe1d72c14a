"""Memory that is used again from one step to the next.

Asking the system for a large array costs more than filling it: every page is fetched, cleared and
given back a moment later. CuPy keeps a pool of memory for that reason, and NumPy has none. This is
one: it lends arrays, and what it lent comes back when nobody holds it any more.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from typing import Any

import numpy as np

from npformer.backend import Array, backend_of

SMALL = 1 << 14
"""Bytes below which an array is simply made: the C library keeps such small pieces itself."""

LINE = 64
"""Arrays begin at a multiple of this many bytes: a cache line, and the widest vector register."""


class _Lease:
    """Who holds an array that was lent: its base. When the last view of it dies, so does this."""

    __slots__ = ("__array_interface__", "_block", "_home")

    def __init__(
        self, block: np.ndarray, home: Workspace, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._block = block
        self._home = home
        address = block.__array_interface__["data"][0]
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (address + -address % LINE, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._home._returned.append(self._block)  # one operation: safe from any thread


class Workspace:
    """Lends arrays and takes them back by itself, once nobody holds them or a view of them.

    So an array that a caller keeps is never overwritten by a later call, and nothing has to be
    given back by hand. Two threads should have one each.

    Attributes
    ----------
    n_bytes : int
        Memory that it holds, lent or free.

    Notes
    -----
    A piece of memory serves any array that fills more than half of it, so batches of changing
    length do not pile up pieces of every size. `tidy`, called once a step, lets go of what has not
    been asked for in some steps.
    """

    def __init__(self) -> None:
        self._returned: list[np.ndarray] = []
        self._free: list[tuple[int, int, np.ndarray]] = []  # size, id, block: sorted
        self._idle: dict[int, int] = {}  # id of a free block: calls of tidy since it was lent
        self._lock = threading.Lock()
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
        return np.asarray(_Lease(self._take(size + LINE), self, shape, dtype))

    def _take(self, size: int) -> np.ndarray:
        with self._lock:
            self._collect()
            at = bisect_left(self._free, (size,))
            if at < len(self._free) and self._free[at][0] <= 2 * size:
                block = self._free.pop(at)[2]
                self._idle.pop(id(block), None)
                return block
            self.n_bytes += size
            return np.empty(size, dtype=np.uint8)

    def _collect(self) -> None:
        """Sort what came back into what is free."""
        while self._returned:
            block = self._returned.pop()
            entry = (block.size, id(block), block)
            self._free.insert(bisect_left(self._free, entry[:2]), entry)

    def tidy(self, patience: int = 8) -> None:
        """Let go of memory that nobody asked for in the last `patience` calls.

        Parameters
        ----------
        patience : int
        """
        with self._lock:
            self._collect()
            kept = []
            for size, key, block in self._free:
                idle = self._idle.get(key, 0) + 1
                if idle > patience:
                    self._idle.pop(key, None)
                    self.n_bytes -= size
                else:
                    self._idle[key] = idle
                    kept.append((size, key, block))
            self._free = kept

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        return Workspace()  # memory is nobody's property: a copy begins with none

    def __reduce__(self) -> Any:
        return Workspace, ()
