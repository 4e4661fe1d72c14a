"""Tools of the kernels: chunks of rows, sums as products, the fastest exponential, and leaves.

A leaf is a function with two bodies: NumPy's passes, and a loop. A pass over an array reads and
writes memory for a single operation; a loop does all operations on a row while the row is in the
cache. `loops.use_loops` switches the loops on.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.core.arrays import STAND_INS
from npformer.engine.context import EngineContext

CHUNK = 1 << 18
"""Entries that elementwise operations take at once. Smaller chunks would fit a second-level cache
better, but need more calls, each of which acquires the interpreter's lock again."""

FEW = 1 << 13
"""Up to this many entries, as for one new token, no memory is lent and no call is divided."""


def map_fits(x: Array, W: Array, b: Array | None) -> bool:
    """Return whether a linear map fits x. The full check, which names the reason, is slower."""
    dtype = W.dtype
    return (
        x.dtype is dtype
        and W.ndim == 2
        and x.shape[-1:] == W.shape[:1]
        and (b is None or (b.dtype is dtype and b.shape == W.shape[1:]))
    )


def few(x: Array, context: EngineContext) -> bool:
    """Return whether x is small, so that calls cost most, and no backward pass follows."""
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
    """Return read-only zeros: `np.maximum` with the number 0.0 would take three times as long."""
    return read_only(np.zeros(n, dtype))


def read_only(x: Array) -> Array:
    """Make an array that later calls reuse read-only, and return it."""
    x.flags.writeable = False
    return x


def column_sums(rows: Array) -> Array:
    """Return the sum over the rows of a matrix: the gradient of a bias."""
    return ones(len(rows), rows.dtype) @ rows


def chunks(rows: int | slice, width: int, at_once: int | None = None) -> list[slice]:
    """Split a number of rows, or a slice of rows, into slices of about `at_once` entries.

    None means `CHUNK`.
    """
    first, last = (0, rows) if isinstance(rows, int) else (rows.start, rows.stop)
    step = max(1, (at_once or CHUNK) // max(width, 1))
    if last - first <= step:
        return [slice(first, last)] if last > first else []
    return [slice(start, min(start + step, last)) for start in range(first, last, step)]


class _Memory(threading.local):
    """Scratch memory. Each thread has its own and keeps it for the next step."""

    space = np.empty(0, "float32")


_memory = _Memory()


def scratch(size: int, dtype: Any) -> Array:
    """Return a vector of scratch memory, which the next call may overwrite."""
    if _memory.space.size < size or _memory.space.dtype != dtype:
        _memory.space = np.empty(size, dtype)
    return _memory.space[:size]


def _exponential() -> tuple[Any, float]:
    """Return np.exp2 if it is vectorised on this machine, else np.exp, and the argument's factor.

    2^x takes half the time in float32, because its argument need not be reduced by ln 2.
    """
    try:
        instructions = np.lib.introspect.opt_func_info(func_name="^exp2$")["exp2"]["ff"]["current"]
    except (AttributeError, KeyError):  # an older NumPy
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

    def __init__(
        self,
        passes: Callable[..., Any],
        loop: Callable[..., Any],
        fastmath: set[str],
        result_without_numbers: Any,
    ) -> None:
        self.passes, self.loop, self.fastmath = passes, loop, fastmath
        self.result_without_numbers = result_without_numbers
        self.run: Any = passes
        LEAVES[passes.__name__] = self

    @property
    def runs_loop(self) -> bool:
        """Whether the loop runs, and not NumPy's passes."""
        return self.run is not self.passes

    def __call__(self, *arguments: Any) -> Any:
        """Run the chosen body; with arrays of `engine.unfilled`, which have no numbers, none."""
        if type(arguments[0]) is not np.ndarray or type(arguments[-1]) in STAND_INS:
            return self.result_without_numbers
        return self.run(*arguments)


def leaf(
    loop: Callable[..., Any],
    fastmath: set[str] = SUMS | FUSED,
    result_without_numbers: Any = None,
) -> Callable[[Any], Leaf]:
    """Return a decorator that makes NumPy's passes and this loop a leaf.

    `fastmath` is what LLVM may change in the loop: `SUMS`, `FUSED`, both, or `ROUNDED`.
    `result_without_numbers` is what a call with arrays that have none returns.
    """

    def make_leaf(passes: Callable[..., Any]) -> Leaf:
        return Leaf(passes, loop, fastmath, result_without_numbers)

    return make_leaf
