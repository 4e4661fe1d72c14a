"""What the kernels for NumPy arrays share: elementwise work in pieces, sums as products."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from npformer.core import Array

PIECE = 1 << 18
"""Entries of an elementwise piece. Smaller ones fit a second-level cache better, and lose what that
saves to more calls, each of which takes the interpreter's lock again."""


def map_fits(x: Array, W: Array, b: Array | None) -> bool:
    """Return whether a linear map fits; the full check, which says why not, takes longer."""
    dtype = W.dtype
    return (
        x.dtype is dtype
        and W.ndim == 2
        and x.shape[-1:] == W.shape[:1]
        and (b is None or (b.dtype is dtype and b.shape == W.shape[1:]))
    )


@lru_cache(maxsize=64)
def ones(n: int, dtype: Any) -> Array:
    """Return a vector of ones, not to be written to.

    A sum over rows or columns is a product with it, which a BLAS runs several times as fast as
    ``sum(axis)``.
    """
    vector = np.ones(n, dtype)
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=64)
def averaging(n: int, dtype: Any) -> Array:
    """Return a vector of 1 / n, not to be written to: a product with it is a mean."""
    vector = ones(n, dtype) * (1.0 / n)
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=64)
def zeros(n: int, dtype: Any) -> Array:
    """Return a vector of zeros, not to be written to.

    ``maximum(x, zeros)`` takes a third of the time of ``maximum(x, 0.0)``.
    """
    vector = np.zeros(n, dtype)
    vector.flags.writeable = False
    return vector


def column_sums(rows: Array) -> Array:
    """Return the sum over rows of a matrix: what a bias receives."""
    return ones(len(rows), rows.dtype) @ rows


def pieces(rows: int | slice, width: int) -> list[slice]:
    """Return slices of about `PIECE` entries of so many rows, or of some of them."""
    first, last = (0, rows) if isinstance(rows, int) else (rows.start, rows.stop)
    step = max(1, PIECE // max(width, 1))
    if last - first <= step:
        return [slice(first, last)] if last > first else []
    return [slice(start, min(start + step, last)) for start in range(first, last, step)]


def _exponential() -> tuple[Any, float]:
    """Return 2^x or e^x, whichever is vectorised here, and the factor from e's units to its own.

    Where both are, 2^x in float32 takes half the time: no reduction of the argument by ln 2.
    """
    try:
        found = np.lib.introspect.opt_func_info(func_name="^exp2$")["exp2"]["ff"]["current"]
    except (AttributeError, KeyError):  # an older NumPy, or one that does not say
        found = "baseline"
    return (np.exp, 1.0) if found.startswith("baseline") else (np.exp2, math.log2(math.e))


EXP, UNIT = _exponential()
"""``EXP(UNIT * x)`` is the exponential of x."""
