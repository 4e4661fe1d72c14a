"""A sentence on what is wrong with a gradient: never what would be right."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from npformer.core import a_type

CLOSE = 1e-6
"""Relative to the largest entry: finite differences stay far below, typical mistakes far above."""

NONE: Mapping[str, Any] = {}


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and, but for rounding, the same values."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return False
    a, b = a.astype(float), b.astype(float)
    scale = float(np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= CLOSE * scale)


def fault_of(
    name: str,
    got: Any,
    right: np.ndarray,
    *,
    variants: Iterable[tuple[str, Any]] = (),
    others: Mapping[str, np.ndarray] = NONE,
    of_ones: np.ndarray | None = None,
    counts: Mapping[str, float] = NONE,
    truth: str = "the slope of the loss",
) -> str:
    """Return what is wrong with a gradient, or "".

    Parameters
    ----------
    name : str
        Of the gradient: "dW", of W.
    got, right : array
        What the reader returned, and what it should be.
    variants : iterable of (str, array)
        What to say of each typical mistake, and the gradient it gives.
    others : mapping of str to array
        The right gradients of the other arguments.
    of_ones : array, optional
        The right gradient for a dy of ones.
    counts : mapping of str to float
        Numbers that may explain a constant factor: {"the number of rows": 8}.
    truth : str
        What the right number is called.
    """
    if fault := _type_fault(name, got):
        return fault
    got = np.asarray(got)
    if same(got, right):
        return _precision_fault(name, got, right)
    for says, variant in variants:
        if same(got, variant) and not same(variant, right):
            return f"{name}: {says}"
    if got.shape != right.shape:
        return f"{name} {_shape_fault(name, got, right)}"
    if not np.isfinite(got).all():
        bad = int((~np.isfinite(got)).sum())
        return f"{name} holds NaN or infinity, in {bad} of its {got.size} entries"
    got = got.astype(float)
    if not got.any():
        return f"{name} is 0 everywhere"
    for typical, says in _typical_gradients(right, others, of_ones):
        if same(got, typical):
            return f"{name} {says}"
    factor = float((got * right).sum() / ((right * right).sum() or 1.0))
    if factor and same(got, factor * right):
        return f"{name} {_factor_fault(factor, counts)}"
    return f"{name} {_entries_fault(got, right, truth)}"


def _type_fault(name: str, got: Any) -> str:
    """Say if something is no array of numbers."""
    if got is None:
        return f"{name} is None: still to do"
    if not isinstance(got, np.ndarray | np.generic | float | int):
        return f"{name} is {a_type(got)}; expected an array"
    dtype = np.asarray(got).dtype
    if dtype.kind == "c":
        return f"{name} is complex; x is real, so its gradient is real too"
    if dtype.kind not in "fiub":
        return f"{name} has dtype {dtype}; expected floating-point numbers"
    return ""


def _precision_fault(name: str, got: np.ndarray, right: np.ndarray) -> str:
    """Say if right values have fewer digits than they should."""
    if got.dtype.kind != "f" or got.dtype.itemsize >= right.dtype.itemsize:
        return ""
    dtypes = f"{name} is {got.dtype}; expected {right.dtype}, as all arrays that came in are"
    return f"{dtypes}. Is something in it cast, or made with dtype={str(got.dtype)!r}?"


def _typical_gradients(
    right: np.ndarray, others: Mapping[str, np.ndarray], of_ones: np.ndarray | None
) -> Iterator[tuple[np.ndarray, str]]:
    """Yield gradients that people return by mistake, and what to say of each."""
    yield -right, "has the wrong sign, everywhere"
    order = "look at the order in which they are returned"
    for other, gradient in others.items():
        yield gradient, f"holds what {other} should be: {order}"
    if right.ndim >= 2:
        yield right.swapaxes(-1, -2), "is transposed: its last two axes are swapped"
    if of_ones is not None:
        says = "does not depend on the gradient that came in: it is right only where that is 1"
        yield of_ones, says


def _shape_fault(name: str, got: np.ndarray, right: np.ndarray) -> str:
    of = name.removeprefix("d")
    shapes = f"its shape is {got.shape}; expected {right.shape}, the shape of {of}"
    missing = got.ndim - right.ndim
    if right.ndim >= 2 and got.shape == right.swapaxes(-1, -2).shape:
        return f"is transposed: {shapes}"
    if missing > 0 and got.shape[missing:] == right.shape:
        return f"is not summed over the batch: {shapes}; every row of the batch uses the same {of}"
    if missing >= 0 and got.size == right.size:
        return f"has the right number of entries in the wrong shape: {shapes}"
    if missing < 0 and right.shape[-missing:] == got.shape:
        return f"is summed over too many axes: {shapes}"
    return f"has the wrong shape: {shapes}"


def _factor_fault(factor: float, counts: Mapping[str, float]) -> str:
    sign = "has the wrong sign, and " if factor < 0.0 else ""
    size = abs(factor)
    for what, count in counts.items():
        if math.isclose(size, count, rel_tol=1e-5):
            return f"{sign}is {count:.4g} times too large, by the factor of {what}"
        if math.isclose(size, 1.0 / count, rel_tol=1e-5):
            return f"{sign}is {count:.4g} times too small, by the factor of {what}"
    much = f"{size:.4g} times too large" if size > 1.0 else f"{1.0 / size:.4g} times too small"
    return f"{sign}is {much}, everywhere: a constant factor"


def _entries_fault(got: np.ndarray, right: np.ndarray, truth: str) -> str:
    wrong = np.abs(got - right) > CLOSE * np.abs(right).max(initial=0.0)
    at = tuple(map(int, np.argwhere(wrong)[0]))
    first = f"{list(at)} it is {got[at]:.5g}, where {truth} is {right[at]:.5g}"
    if wrong.all():
        return f"is wrong in every entry: at {first}"
    share = f"is wrong in {int(wrong.sum())} of its {wrong.size} entries"
    if wrong.ndim >= 2 and got.size > 4:
        wrong_rows = wrong.all(axis=tuple(range(1, wrong.ndim)))
        if wrong_rows.any() and wrong.sum() == wrong_rows.sum() * wrong[0].size:
            rows = ", ".join(map(str, np.flatnonzero(wrong_rows)))
            share = f"is right except for the entries [{rows}] of its first axis"
    return f"{share}: at {first}"
