"""What the kernels share: pieces of rows, sums as products, the fastest exponential, and leaves.

A leaf is a function with two bodies: NumPy's passes, and a loop. A pass over an array reads and
writes memory for one operation; a loop does all that happens to a row while the row is in the
cache. `loops.use_loops` lets the loops run.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext

PIECE = 1 << 18
"""Entries that elementwise operations take at once. Smaller pieces would fit a second-level cache
better, but need more calls, each of which takes the interpreter's lock again."""


FEW = 1 << 13
"""Up to this many entries no memory is lent and no call divided: one token each of some rows."""


def map_fits(x: Array, W: Array, b: Array | None) -> bool:
    """Return whether a linear map fits x. The full check, which says why not, takes longer."""
    dtype = W.dtype
    return (
        x.dtype is dtype
        and W.ndim == 2
        and x.shape[-1:] == W.shape[:1]
        and (b is None or (b.dtype is dtype and b.shape == W.shape[1:]))
    )


def few(x: Array, context: EngineContext) -> bool:
    """Return whether calls cost more than computing: x is small, and no backward pass follows."""
    return not context.keep and x.size <= FEW


def product(rows: Array, W: Array, b: Array | None) -> Array:
    """Return rows W + b."""
    y: Array = rows @ W
    if b is not None:
        y += b
    return y


@lru_cache(maxsize=64)
def ones(n: int, dtype: Any) -> Array:
    """Return a read-only vector of ones.

    A product with it is a sum over rows or columns, several times as fast as ``sum(axis)``.
    """
    return read_only(np.ones(n, dtype))


@lru_cache(maxsize=64)
def averaging(n: int, dtype: Any) -> Array:
    """Return a read-only vector of 1 / n: a product with it is a mean."""
    return read_only(ones(n, dtype) * (1.0 / n))


@lru_cache(maxsize=64)
def zeros(n: int, dtype: Any) -> Array:
    """Return read-only zeros: `np.maximum` with the number 0.0 takes three times as long."""
    return read_only(np.zeros(n, dtype))


def read_only(x: Array) -> Array:
    """Return an array that is kept for later calls, after making it read-only."""
    x.flags.writeable = False
    return x


def column_sums(rows: Array) -> Array:
    """Return the sum over the rows of a matrix: the gradient of a bias."""
    return ones(len(rows), rows.dtype) @ rows


def pieces(rows: int | slice, width: int) -> list[slice]:
    """Split a number of rows, or a slice of rows, into slices of about `PIECE` entries."""
    first, last = (0, rows) if isinstance(rows, int) else (rows.start, rows.stop)
    step = max(1, PIECE // max(width, 1))
    if last - first <= step:
        return [slice(first, last)] if last > first else []
    return [slice(start, min(start + step, last)) for start in range(first, last, step)]


class _Memory(threading.local):
    """Scratch memory. Each thread has its own and keeps it for the next step."""

    space = np.empty(0, "float32")


_memory = _Memory()


def scratch(size: int, dtype: Any) -> Array:
    """Return a vector that the next call may overwrite."""
    if _memory.space.size < size or _memory.space.dtype != dtype:
        _memory.space = np.empty(size, dtype)
    return _memory.space[:size]


def _exponential() -> tuple[Any, float]:
    """Return np.exp2 if it is vectorised here, else np.exp, and the factor for its argument.

    2^x takes half the time in float32, because its argument need not be reduced by ln 2.
    """
    try:
        instructions = np.lib.introspect.opt_func_info(func_name="^exp2$")["exp2"]["ff"]["current"]
    except (AttributeError, KeyError):  # an older NumPy, or one that does not tell
        instructions = "baseline"
    return (np.exp, 1.0) if instructions.startswith("baseline") else (np.exp2, math.log2(math.e))


EXP, UNIT = _exponential()
"""``EXP(UNIT * x)`` is the exponential of x."""


# Leaves ------------------------------------------------------------------------------------------

SUMS, FUSED, ROUNDED = {"nsz", "reassoc"}, {"contract"}, set[str]()
"""What LLVM may change: the order of sums; products and sums, rounded once; or nothing.

Without the first a sum over a row is not vectorised. NaN and infinity always remain.
"""

LEAVES: dict[str, Leaf] = {}
"""All leaves, by the name of their passes."""


class Leaf:
    """A function with two bodies that have the same arguments and results."""

    def __init__(self, passes: Callable[..., Any], loop: Callable[..., Any], may: set[str]) -> None:
        self.passes, self.loop, self.may = passes, loop, may
        self.run: Any = passes
        LEAVES[passes.__name__] = self

    @property
    def compiled(self) -> bool:
        """Whether it runs the loop."""
        return self.run is not self.passes

    def __call__(self, *arguments: Any) -> Any:
        """Run the body that was chosen."""
        return self.run(*arguments)


def leaf(loop: Callable[..., Any], may: set[str] = SUMS | FUSED) -> Callable[[Any], Leaf]:
    """Return a decorator that makes NumPy's passes a leaf with this loop, and what LLVM may do."""
    return lambda passes: Leaf(passes, loop, may)
