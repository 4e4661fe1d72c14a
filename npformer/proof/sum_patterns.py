"""Errors in the sum that a gradient is: terms lost, weighted, or summed over a wrong axis.

The gradient of one entry is a sum over all outputs, J^T dy with the Jacobian J. Some wrong
gradients are another sum of the same terms.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from npformer.proof.evidence import STRICT, Pattern, WrongGradient

MOST_PARTS = 64
"""The longest axis of y whose indices are weighted one by one."""

AXES_OF_Y = {2: ("sample", "feature"), 3: ("sample", "token", "feature")}
"""What an index of each axis of y stands for, by how many axes it has."""


def find_sums(wrong: WrongGradient) -> Pattern | None:
    """Find another sum over the Jacobian's terms that gives what the backward pass gave."""
    jacobian, dy = wrong.evidence.jacobian, wrong.evidence.dy
    if jacobian is None or dy is None or dy.ndim == 0 or wrong.comparable.sum() < 3:
        return None
    matrix = jacobian.reshape(wrong.numeric.size, dy.size)
    return (
        _find_ignored(wrong, matrix)
        or _find_diagonal(wrong, matrix, dy)
        or _find_axes(wrong, matrix, dy)
        or _find_weights(wrong, matrix, dy)
    )


def _find_ignored(wrong: WrongGradient, matrix: np.ndarray) -> Pattern | None:
    ones = matrix.sum(1).reshape(wrong.numeric.shape)
    if wrong.explains(ones):
        return Pattern("dy ignored", "dy is not multiplied by: it is right for a dy of ones alone")
    return None


def _find_diagonal(wrong: WrongGradient, matrix: np.ndarray, dy: np.ndarray) -> Pattern | None:
    """Find a gradient in which output i is differentiated with respect to input i alone."""
    if dy.shape != wrong.numeric.shape:
        return None
    diagonal = np.diagonal(matrix).reshape(dy.shape)
    if wrong.explains(diagonal * dy):
        words = "only the diagonal of the Jacobian is there: dy[i] times the derivative of y[i]"
        if _is_softmax(wrong, diagonal):
            words = "only the diagonal of softmax's Jacobian is there, dy y (1 - y)"
        return Pattern("diagonal", words)
    return None


def _is_softmax(wrong: WrongGradient, diagonal: np.ndarray) -> bool:
    y = wrong.evidence.y
    return y is not None and bool(np.allclose(diagonal, y * (1.0 - y), rtol=1e-5, atol=1e-8))


def _find_axes(wrong: WrongGradient, matrix: np.ndarray, dy: np.ndarray) -> Pattern | None:
    """Find the axes over which the terms were summed, where each output has one term."""
    if dy.ndim < 2 or (np.abs(matrix) > 1e-9 * np.abs(matrix).max(initial=0.0)).sum(0).max() > 1:
        return None
    terms = matrix.sum(0).reshape(dy.shape) * dy
    right, wrong_axes = None, None
    for count in range(1, dy.ndim):
        for axes in combinations(range(dy.ndim), count):
            sums = terms.sum(axes)
            if sums.size != wrong.numeric.size:
                continue
            if np.allclose(sums.reshape(wrong.numeric.shape), wrong.numeric, rtol=1e-5, atol=1e-8):
                right = axes
            elif wrong.explains(sums.reshape(wrong.numeric.shape)):
                wrong_axes = axes
    if wrong_axes is None:
        return None
    instead = f", not over {_list_axes(right)}" if right else ""
    return Pattern("wrong axis", f"summed over {_list_axes(wrong_axes)} of y{instead}")


def _list_axes(axes: tuple[int, ...]) -> str:
    return f"{'axis' if len(axes) == 1 else 'axes'} {' and '.join(map(str, axes))}"


def _find_weights(wrong: WrongGradient, matrix: np.ndarray, dy: np.ndarray) -> Pattern | None:
    """Find an axis of y whose indices enter with weights other than 1."""
    known = wrong.comparable.reshape(-1)
    analytic = wrong.analytic.reshape(-1)[known]
    for axis in range(dy.ndim):
        n = dy.shape[axis]
        if not 2 <= n <= MOST_PARTS or known.sum() < n + 3:
            continue
        terms = (matrix[known] * dy.reshape(-1)).reshape(-1, *dy.shape)
        terms = np.moveaxis(terms, axis + 1, 1).reshape(len(analytic), n, -1).sum(2)
        weights, _, rank, _ = np.linalg.lstsq(terms, analytic, rcond=1e-8)
        candidate = np.full(wrong.numeric.size, np.nan)
        candidate[known] = terms @ weights
        if rank == n and wrong.explains(candidate.reshape(wrong.numeric.shape)):
            return _explain_by_array(weights, wrong) or _describe_weights(weights, axis, dy.ndim)
    return None


def _explain_by_array(weights: np.ndarray, wrong: WrongGradient) -> Pattern | None:
    """Find an array, such as gamma, whose entries the weights are, or of which they are 1 over."""
    for name, array in wrong.evidence.inputs.items():
        if array.shape != weights.shape or not np.ptp(array):
            continue
        if np.allclose(weights * array, 1.0, rtol=0.0, atol=STRICT):
            return Pattern("factor missing", f"dy is not multiplied by {name}")
        if np.allclose(weights, array, rtol=STRICT, atol=0.0):
            return Pattern("factor too many", f"dy is multiplied by {name} once too often")
    return None


def _describe_weights(weights: np.ndarray, axis: int, ndim: int) -> Pattern:
    n = len(weights)
    names = AXES_OF_Y.get(ndim, (f"index of axis {axis}",) * ndim)
    index = names[axis]
    present = np.flatnonzero(np.abs(weights) > STRICT)
    if np.abs(weights[present] - 1.0).max(initial=0.0) > STRICT:
        return Pattern("weights", _write_weights(weights, index, axis))
    if len(present) == 1:
        place = {0: f"the first {index}", n - 1: f"the last {index}"}.get(int(present[0]))
        place = place or f"{index} {present[0]}"
        words = f"only {place} (axis {axis} of y) counts: its terms are assigned, and not added"
        return Pattern("terms lost", words)
    lost = [i for i in range(n) if i not in present]
    numbers = ", ".join(map(str, lost[:6])) + (", ..." if len(lost) > 6 else "")
    return Pattern("terms lost", f"the terms of {index} {numbers} (axis {axis} of y) are lost")


def _write_weights(weights: np.ndarray, index: str, axis: int) -> str:
    """Return the numbers that terms are multiplied by: of the wrong ones, if most are right."""
    wrong = np.flatnonzero(np.abs(weights - 1.0) > STRICT)
    indices = wrong if 2 * len(wrong) <= len(weights) else np.arange(len(weights))
    numbers = ", ".join(f"{weight:.4g}" for weight in weights[indices[:6]])
    more = ", ..." if len(indices) > 6 else ""
    which = f"each {index}"
    if len(indices) < len(weights):
        which = f"{index} {', '.join(map(str, indices[:6]))}{more}"
    return f"the terms of {which} (axis {axis} of y) are multiplied by {numbers}{more}"
