"""What a layer or a pair computes: in float32 the same as in float64, up to rounding."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.proof.problem import Problem

TOLERANCES = {"float64": 1e-9, "float32": 3e-4}
"""The largest difference that passes, relative to the largest entry of a tensor."""

SHARES = {"float64": 1e-2, "float32": 1e-1}
"""Differences are relative at least to this share of the largest gradient of all tensors: where a
gradient is exactly 0, as for attention's key bias, both results are only rounding errors."""

Y_SHARE = 1e-3
"""In float32 they are also relative at least to this share of |y| / max(1, |x|)."""

Floors = Mapping[str, float]
"""The least size taken for each tensor, by its name."""

NO_FLOORS: Floors = {}

NUDGE, NUDGES = 1e-6, 3
"""How far inputs and parameters are moved, relative to their largest entries, and how often, to see
what rounding may do."""

NUDGE_FACTOR = 10.0
"""In float32 an error may be this many times what nudges change: then the function itself loses the
digits, or a corner is near."""

Results = Mapping[str, np.ndarray]
"""y, and the gradient of each tensor by its name."""


def check_float32(
    problem: Problem, v: np.ndarray, truth: Results, is_layer: bool
) -> tuple[float | None, list[str]]:
    """Return the error in float32, and the rules that are broken.

    The error is None if float32 cannot be tried: there may be hidden constants in float64.
    """
    try:
        with problem.convert_to_float32() as single, np.errstate(all="ignore"):
            results = results_of(single, v)
    except Exception:  # in a user's code
        return None, []
    share = Y_SHARE * float(np.abs(truth["y"]).max(initial=0.0))
    # The least size taken for each gradient: a 0 is a sum of terms that cancel.
    floors = {n: share / float(np.abs(x).max(initial=1.0)) for n, x in problem.arrays.items()}
    error, tensor = difference("float32", results, truth, floors)
    wide = [n for n, g in results.items() if results["y"].dtype == "float32" != g.dtype and g.ndim]
    if is_layer and wide:  # a function may use hidden constants in float64
        return error, [f"in float32 the gradient of {wide[0]} is {results[wide[0]].dtype}"]
    if error <= TOLERANCES["float32"] or has_nan(truth):
        return error, []
    if error <= NUDGE_FACTOR * _sensitivity(problem, v, truth, floors):
        return error, []
    return error, [f"in float32 {tensor} differs by {error:.1e} from its value in float64"]


def _sensitivity(problem: Problem, v: np.ndarray, truth: Results, floors: Floors) -> float:
    """Return the largest relative change of any result when all arrays change a little."""
    rng, changes = np.random.default_rng(0), [0.0]

    def nudge(x: np.ndarray) -> np.ndarray:
        largest = NUDGE * float(np.abs(x).max(initial=0.0))
        return largest * rng.uniform(-1.0, 1.0, x.shape)

    for _ in range(NUDGES):
        with problem.moved(nudge):
            changes.append(difference("float32", results_of(problem, v), truth, floors)[0])
    return max(changes)


def results_of(problem: Problem, v: np.ndarray) -> Results:
    """Return what a problem computes, for dy = v."""
    y, cache = problem.forward()
    y = np.array(y)
    return {**gradients_of(problem, v.astype(y.dtype), cache), "y": y}


def gradients_of(problem: Problem, dy: np.ndarray, cache: Any) -> Results:
    """Return copies of the gradients that are not None."""
    gradients = problem.backward(dy, cache)
    return {
        name: np.array(gradient) for name, gradient in gradients.items() if gradient is not None
    }


def has_nan(results: Results) -> bool:
    """Return whether there is NaN: that is wrong already, and nothing can be compared with it."""
    return any(np.isnan(x).any() for x in results.values())


def difference(
    dtype: str, found: Results, truth: Results, floors: Floors = NO_FLOORS
) -> tuple[float, str]:
    """Return the largest relative difference, and the name of its tensor."""
    sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in truth.items()}
    largest = max((size for name, size in sizes.items() if name != "y"), default=0.0)
    errors = {"y": 0.0}
    for name, x in truth.items():
        if name not in found or found[name].shape != x.shape:
            return float("nan"), name
        share = 0.0 if name == "y" else SHARES[dtype] * largest
        scale = max(sizes[name], share, floors.get(name, 0.0), float(np.finfo(np.float64).tiny))
        apart = np.where(np.isnan(x) & np.isnan(found[name]), 0.0, np.abs(found[name] - x))
        errors[name] = float(apart.max(initial=0.0)) / scale
    where = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    return errors[where], where
