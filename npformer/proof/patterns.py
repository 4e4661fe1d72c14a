"""What kind of error a wrong gradient has, in words: transposed, or divided by the batch size.

Each kind is a formula that makes the wrong gradient from the right one. A kind is named only if its
formula leaves less than a ten-thousandth of the error unexplained, so a random error has no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np

from npformer.proof.across_patterns import Pairs, find_across
from npformer.proof.evidence import STRICT, Evidence, Pattern, WrongGradient
from npformer.proof.factors import is_known_factor, write_factor
from npformer.proof.loss_patterns import find_epsilon, find_target_by_value
from npformer.proof.mask_patterns import find_mask
from npformer.proof.row_patterns import find_missing_terms, find_penalty, find_softmax_sum
from npformer.proof.slice_patterns import find_slices
from npformer.proof.sum_patterns import find_sums

NO_EVIDENCE = Evidence()

NOTHING = 1e-9
"""A gradient of at most this share of the other one is zero up to rounding."""

WEAK = frozenset({"weights", "factors", "slices"})
"""Kinds with many numbers to choose: one that several tensors show together says more."""

KEY_BIAS = re.compile(r"\bkey\w*\.b(ias)?$|^b_?k$|\.b_?k$", re.IGNORECASE)
"""Names of the bias of an attention's keys."""

MOST_AXES = 4
"""Up to this many axes all orders are tried."""


def name_pattern(
    name: str, analytic: np.ndarray, numeric: np.ndarray, evidence: Evidence = NO_EVIDENCE
) -> str:
    """Return in words what kind of error a gradient has; "" if it has none that is known.

    Parameters
    ----------
    name : str
        Of the tensor.
    analytic, numeric : float64 array
        Its gradients from the backward pass and from differences, of the same shape. NaN where an
        entry is unknown or at a corner.
    evidence : Evidence
        What is known of the function: its inputs, dy, y, and the tensor's Jacobian.

    Examples
    --------
    >>> dW = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> name_pattern("W", dW.T, dW)
    'transposed'
    >>> name_pattern("W", dW / 3.0, dW, Evidence(inputs={"x": np.ones((3, 2))}))
    'backward is 1/3 of the derivative; 3 is the batch size'
    """
    pattern = find_pattern(name, analytic, numeric, evidence)
    return "" if pattern is None else pattern.words


def find_pattern(
    name: str, analytic: np.ndarray, numeric: np.ndarray, evidence: Evidence = NO_EVIDENCE
) -> Pattern | None:
    """Return the kind of error of a gradient: see `name_pattern`; None if it is unknown."""
    if analytic.shape != numeric.shape:
        raise ValueError(
            f"the gradients of {name} have shapes {analytic.shape} and {numeric.shape}; expected "
            "the same shape. Fill entries that are unknown with NaN"
        )
    wrong = WrongGradient(name, analytic, numeric, evidence)
    if not wrong.error.any():
        return None
    for find in FINDERS:
        pattern = find(wrong)
        if pattern is not None:
            return pattern
    return None


def patterns_of_all(
    pairs: Pairs,
    evidence: Evidence = NO_EVIDENCE,
    jacobians: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Pattern]:
    """Return the kinds of error of several tensors, also those that only several show together.

    Parameters
    ----------
    pairs : mapping of str to (array, array)
        The analytic and the numeric gradient of each tensor by name; of a right one the same array
        twice.
    evidence : Evidence
        Of the function, without a Jacobian.
    jacobians : mapping of str to array, optional
        The Jacobian of each tensor whose Jacobian is known.
    """
    patterns: dict[str, Pattern] = {}
    for name, (analytic, numeric) in pairs.items():
        if analytic is numeric:
            continue
        jacobian = (jacobians or {}).get(name)
        wrong = WrongGradient(name, analytic, numeric, replace(evidence, jacobian=jacobian))
        pattern = find_pattern(name, analytic, numeric, wrong.evidence)
        if pattern is None or pattern.kind in WEAK:
            pattern = find_across(wrong, pairs) or pattern
        if pattern is not None:
            patterns[name] = pattern
    return patterns


def _find_zero(wrong: WrongGradient) -> Pattern | None:
    analytic, numeric = (np.abs(g[wrong.comparable]) for g in (wrong.analytic, wrong.numeric))
    if not analytic.any():
        return Pattern("zero", "zero in every entry, though y depends on it: it is never trained")
    if numeric.max(initial=0.0) <= NOTHING * analytic.max():
        words = "not zero, though y does not depend on it"
        if KEY_BIAS.search(wrong.name):
            words += (
                ". The bias of keys adds the same to all scores of a query, so the gradients of "
                "these scores have to add up to 0: terms of them are lost"
            )
        return Pattern("nonzero", words)
    return None


def _find_factor(wrong: WrongGradient) -> Pattern | None:
    inputs, numbers = wrong.evidence.inputs, wrong.evidence.numbers
    factor = wrong.multiple(wrong.numeric)
    if factor is None and wrong.comparable.sum() == 1:  # one entry always has a factor
        ratio = float(wrong.analytic[wrong.comparable][0] / wrong.numeric[wrong.comparable][0])
        factor = ratio if is_known_factor(ratio, inputs, numbers) else None
    if factor is None:
        return None
    kind = "sign" if math.isclose(factor, -1.0, rel_tol=STRICT) else "factor"
    return Pattern(kind, write_factor(factor, inputs, numbers))


def _find_transposed(wrong: WrongGradient) -> Pattern | None:
    """Find an order of the axes that gives the gradient, also with a reshape that fits."""
    numeric = wrong.numeric
    if not 2 <= numeric.ndim <= MOST_AXES or wrong.comparable.sum() < 3:
        return None
    for axes in list(permutations(range(numeric.ndim)))[1:]:
        permuted = np.transpose(numeric, axes)
        factor = wrong.multiple(permuted.reshape(numeric.shape))
        if factor is None:
            continue
        kind, words = _words_for_axes(axes, permuted.shape == numeric.shape)
        if not math.isclose(factor, 1.0, rel_tol=STRICT):
            number = write_factor(factor, wrong.evidence.inputs, wrong.evidence.numbers)
            words += f"; besides, {number}"
        return Pattern(kind, words)
    return None


def _words_for_axes(axes: tuple[int, ...], fits: bool) -> tuple[str, str]:
    if len(axes) == 2:
        if fits:
            return "transposed", "transposed"
        return "reshaped", "transposed, then reshaped so that it fits"
    order = ", ".join(map(str, axes))
    then = "" if fits else ", then reshaped so that it fits"
    return "permuted", f"its axes are in the order ({order}){then}"


def _find_moved(wrong: WrongGradient) -> Pattern | None:
    """Find an axis along which the gradient is reversed or shifted."""
    for axis in range(wrong.numeric.ndim):
        n = wrong.numeric.shape[axis]
        if n > 1 and wrong.explains(np.flip(wrong.numeric, axis)):
            return Pattern("reversed", f"in reverse order along axis {axis}")
        for shift in (1, -1) if n > 2 else ():
            if wrong.explains(_shift(wrong.numeric, shift, axis)):
                return Pattern("shifted", f"shifted by {shift:+d} along axis {axis}")
    return None


def _shift(x: np.ndarray, shift: int, axis: int) -> np.ndarray:
    """Return an array whose entries move along an axis; those that leave it are lost."""
    rolled = np.roll(x, shift, axis)
    first = [slice(None)] * x.ndim
    first[axis] = slice(0, 1) if shift > 0 else slice(-1, None)
    edge = rolled[tuple(first)]
    edge[...] = np.nan  # either 0, or what came around
    return rolled


def _find_residual(wrong: WrongGradient) -> Pattern | None:
    """Find dy in the error: a residual connection's gradient is dy, and of a bias its sum."""
    dy, shape = wrong.evidence.dy, wrong.numeric.shape
    if dy is None or not shape or wrong.comparable.sum() < 2:
        return None
    n_summed = dy.ndim - len(shape)
    if n_summed < 0 or dy.shape[n_summed:] != shape:
        return None
    term, name = dy.sum(tuple(range(n_summed))), "the sum of dy" if n_summed else "dy"
    if wrong.explains(wrong.numeric - term):
        words = f"{name} is missing from it, as if a residual connection had been left out"
        return Pattern("residual missing", words)
    if wrong.explains(wrong.numeric + term):
        return Pattern("residual twice", f"{name} is added once too often")
    return None


def _find_identity(wrong: WrongGradient) -> Pattern | None:
    dy = wrong.evidence.dy
    if dy is not None and dy.shape == wrong.numeric.shape and wrong.explains(dy):
        return Pattern("identity", "it is dy itself, as if the function were y = x")
    return None


def _find_constant(wrong: WrongGradient) -> Pattern | None:
    """Find an error that is the same everywhere, or a mean that was not subtracted."""
    if wrong.comparable.sum() < 3:
        return None
    mean = float(wrong.error[wrong.comparable].mean())
    if wrong.explains(wrong.numeric + mean):
        return Pattern("constant", f"off by {mean:.6g} in every entry")
    for axis in range(wrong.numeric.ndim):
        if wrong.numeric.shape[axis] < 3:
            continue
        means = wrong.analytic.mean(axis, keepdims=True)
        if wrong.explains(wrong.numeric + means):
            return Pattern("mean", f"its mean over axis {axis} is not subtracted")
    return None


def _find_array(wrong: WrongGradient) -> Pattern | None:
    """Find an array that is missing as a factor, or is there once too often."""
    for name, array in _arrays_beside(wrong):
        if wrong.explains(wrong.numeric * array):
            return Pattern("factor too many", f"multiplied by {name} once too often")
        with np.errstate(all="ignore"):
            if wrong.explains(wrong.numeric / array):
                return Pattern("factor missing", f"the factor {name} is missing")
    return None


def _arrays_beside(wrong: WrongGradient) -> Iterator[tuple[str, np.ndarray]]:
    """Yield arrays that could be multiplied by the gradient, in its shape."""
    shape = wrong.numeric.shape
    arrays = {**wrong.evidence.inputs, "dy": wrong.evidence.dy, "y": wrong.evidence.y}
    for name, array in arrays.items():
        if array is None or array.dtype.kind not in "fb" or array.ndim > len(shape):
            continue
        of_rows = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
        for fitted in (array, of_rows):  # over the last axes, or over the first ones
            if np.ptp(fitted.astype("float64")) and _fits(fitted.shape, shape):
                yield name, np.broadcast_to(fitted, shape).astype("float64")


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an array of this shape is broadcast to the target."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


FINDERS: tuple[Callable[[WrongGradient], Pattern | None], ...] = (
    _find_zero,
    _find_factor,
    _find_transposed,
    _find_residual,
    _find_moved,
    _find_constant,
    _find_array,
    _find_identity,
    find_epsilon,
    find_target_by_value,
    find_penalty,
    find_missing_terms,
    find_softmax_sum,
    find_mask,
    find_slices,
    find_sums,
)
"""From the simplest formula to those that have most to choose from."""
