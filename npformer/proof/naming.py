"""Name the errors of wrong gradients: gather what is known of the function, then `patterns`."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.proof.across_patterns import Pairs
from npformer.proof.central_difference import STEP
from npformer.proof.evidence import Evidence, Pattern, WrongGradient
from npformer.proof.patterns import patterns_of_all
from npformer.proof.problem import Problem
from npformer.proof.report import TensorReport, wrong_among
from npformer.proof.results import Results

MOST_ENTRIES = 4096
"""Entries whose derivatives are computed one by one, of all wrong tensors together."""

MOST_SAMPLED = 128
"""Entries of a tensor that is too large for that."""

MOST_NUMBERS = 2_000_000
"""The largest Jacobian that is kept."""

SAVED_OUTPUT = Pattern(
    "saved output", "right at y in place of x: the forward pass saved its output for its input"
)

CORNER = 1e-2
"""Slopes that differ by more, relative to the largest, are at a corner."""


def name_errors(
    problem: Problem,
    gradients: Results,
    tensors: list[TensorReport],
    evidence: Evidence,
    tolerance: float,
    complex_tolerance: float | None,
    step: float = STEP,
) -> list[TensorReport]:
    """Return the reports of tensors, with the kinds of error of the wrong ones.

    `gradients` are those of the backward pass. `evidence` has y and dy, and no Jacobian. `step` is
    that of differences.
    """
    wrong = wrong_among(tensors, tolerance, complex_tolerance)
    if not wrong:
        return tensors
    zeros = {tensor.name: np.zeros(tensor.shape) for tensor in tensors}  # where it is None
    analytic = {name: gradients.get(name, zeros[name]).astype("float64") for name in zeros}
    pairs = {name: (gradient, gradient) for name, gradient in analytic.items()}
    jacobians: dict[str, np.ndarray] = {}
    left = MOST_ENTRIES
    for tensor in sorted(wrong, key=lambda tensor: math.prod(tensor.shape)):
        name = tensor.name
        numeric, jacobian = differentiate(problem, name, evidence, left, step)
        left = max(left - int(np.isfinite(numeric).sum()), 0)
        pairs[name] = analytic[name], _take_exact(tensor, numeric)
        if jacobian is not None:
            jacobians[name] = jacobian
    inputs = {**evidence.inputs, **name_constants(problem)}
    patterns = patterns_of_all(pairs, replace(evidence, inputs=inputs), jacobians)
    for tensor in wrong:
        if tensor.name not in patterns and is_that_of_output(problem, tensor.name, pairs, evidence):
            patterns[tensor.name] = SAVED_OUTPUT
    return [
        _add_pattern(tensor, patterns.get(tensor.name), pairs[tensor.name]) for tensor in tensors
    ]


def is_that_of_output(problem: Problem, name: str, pairs: Pairs, evidence: Evidence) -> bool:
    """Return whether a gradient is the derivative at y in place of x."""
    x, y = problem.arrays[name], np.asarray(evidence.y)
    if x.shape != y.shape or x.size > MOST_ENTRIES:
        return False
    original = x.copy()
    try:
        x[...] = y
        y_of_y = np.array(problem.forward()[0])
        numeric, _ = differentiate(problem, name, replace(evidence, y=y_of_y), MOST_ENTRIES)
    except Exception:  # in a user's code, which is not defined there
        return False
    finally:
        x[...] = original
    return WrongGradient(name, *pairs[name], evidence).explains(numeric)


def _take_exact(tensor: TensorReport, numeric: np.ndarray) -> np.ndarray:
    """Return derivatives with those of the complex step, which has more digits, where it is."""
    if tensor.entries is None:
        return numeric
    return np.where(np.isfinite(tensor.entries.exact), tensor.entries.exact, numeric)


def _add_pattern(
    tensor: TensorReport, pattern: Pattern | None, pair: tuple[np.ndarray, np.ndarray]
) -> TensorReport:
    """Return the report of a tensor with its pattern, and with the derivatives of its entries."""
    analytic, numeric = pair
    if tensor.entries is not None and numeric is not analytic:
        unknown = np.isnan(tensor.entries.derivative)
        derivative = np.where(unknown, numeric, tensor.entries.derivative)
        tensor = replace(tensor, entries=replace(tensor.entries, derivative=derivative))
    if pattern is None:
        return tensor
    return replace(tensor, kind=pattern.kind, pattern=pattern.words)


def name_constants(problem: Problem) -> dict[str, np.ndarray]:
    """Return the arrays that a function is given and that have no gradient, by a name."""
    kinds = {"i": "ids", "u": "ids", "b": "mask"}
    constants: dict[str, np.ndarray] = {}
    for array in problem.constants:
        name = kinds.get(array.dtype.kind, "constant")
        constants[f"{name} {len(constants)}" if name in constants else name] = array
    return constants


def differentiate(
    problem: Problem, name: str, evidence: Evidence, most: int, step: float = STEP
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the derivatives of L = sum(y * dy) for one array, and its Jacobian if it is small.

    NaN stands for corners, and for entries that are left out of an array with more than `most`.
    """
    y, dy = np.asarray(evidence.y), np.asarray(evidence.dy)
    x = problem.arrays[name]
    numeric = np.full(x.shape, np.nan)
    jacobian = None
    indices = np.arange(x.size)
    if x.size > most:
        rng = np.random.default_rng(0)
        indices = np.sort(rng.choice(x.size, size=min(MOST_SAMPLED, x.size), replace=False))
    elif x.size * y.size <= MOST_NUMBERS:
        jacobian = np.zeros((x.size, y.size))
    slopes = np.zeros((2, x.size))
    for i in indices:
        below, above = _changes(problem, x, int(i), y, step)
        slopes[:, i] = (below * dy).sum(), (above * dy).sum()
        numeric.flat[i] = slopes[:, i].mean()
        if jacobian is not None:
            jacobian[i] = 0.5 * (below + above).reshape(-1)
    corners = np.abs(slopes[1] - slopes[0]) > CORNER * np.abs(slopes).max(initial=0.0)
    numeric[corners.reshape(x.shape)] = np.nan
    return numeric, None if jacobian is None else jacobian.reshape(x.shape + y.shape)


def _changes(
    problem: Problem, x: np.ndarray, i: int, y: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how y changes per step, below and above entry i of an array."""
    start = float(x.flat[i])
    step = step * max(1.0, abs(start))
    try:
        x.flat[i] = start - step
        low, width_below = np.array(problem.forward()[0]), start - float(x.flat[i])
        x.flat[i] = start + step
        high, width_above = np.array(problem.forward()[0]), float(x.flat[i]) - start
    finally:
        x.flat[i] = start
    return (y - low) / width_below, (high - y) / width_above


def numbers_of(settings: Any, depth: int = 2) -> dict[str, float]:
    """Return the numbers among the settings of an object, and of the objects that it holds."""
    values = settings if isinstance(settings, Mapping) else getattr(settings, "__dict__", {})
    result: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            result[str(name)] = float(value)
        elif depth and hasattr(value, "__dict__") and not isinstance(value, type):
            result = {**numbers_of(value, depth - 1), **result}
    return result
