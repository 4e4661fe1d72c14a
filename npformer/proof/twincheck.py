"""Compare a layer with its twin, the engine's version of it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Context, Layer
from npformer.proof.problem import Problem, layer_problem, parameters_as
from npformer.proof.rules import check_rules, gradients_of

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""The largest difference that passes, relative to the largest entry of a tensor."""

SHARES = {"float64": 1e-2, "float32": 1e-1}
"""Differences are relative at least to this share of the largest gradient of all tensors: where a
gradient is exactly 0, as for attention's key bias, both compute only rounding."""

PLAIN_FACTOR = 10.0
"""In float32 a twin's error may be this many times the plain layer's own error in float32: where
both are large, the function itself loses the digits."""

Results = Mapping[str, np.ndarray]
"""y, and the gradient of each tensor by its name."""


@dataclass(frozen=True)
class TwinReport:
    """How far a twin is from its plain layer in float64."""

    dtype: str  # in which the twin ran: "float64" or "float32"
    error: float  # the largest relative difference of all tensors; NaN if the twin gave NaN
    tensor: str  # the tensor with that difference: "y", an input or a parameter
    tolerance: float
    of_plain: float = 0.0  # the error of the plain layer in this dtype: 0 in float64

    @property
    def passed(self) -> bool:
        """Whether the twin computes what the layer computes."""
        return self.error <= max(self.tolerance, PLAIN_FACTOR * self.of_plain)


def check_twin(
    layer: Layer,
    twin: Layer,
    inputs: tuple[Any, ...],
    new_context: Callable[[], Context],
    v: np.ndarray,
    truth: Results,
) -> tuple[list[TwinReport], list[str]]:
    """Compare a twin with its layer's results in float64; return reports and broken rules."""
    y, gradients, broken = check_rules(layer_problem(layer, inputs, new_context, twin), v)
    reports = [twin_report("float64", {**gradients, "y": y}, truth)]
    with in_float32(layer):
        try:
            plain = _results(layer_problem(layer, inputs, new_context, dtype="float32"), v)
        except Exception:  # not the twin's fault: the layer itself does not run in float32
            return reports, broken
        found = _results(layer_problem(layer, inputs, new_context, twin, "float32"), v)
    of_plain, _ = _difference("float32", plain, truth)
    return [*reports, twin_report("float32", found, truth, of_plain)], broken


def in_float32(layer: Layer) -> AbstractContextManager[None]:
    """Convert a layer's parameters to float32 inside a `with` block."""
    return parameters_as(layer, lambda flat: flat.astype("float32"))


def _results(problem: Problem, v: np.ndarray) -> Results:
    y, cache = problem.forward()
    y = np.array(y)
    return {**gradients_of(problem, v.astype(y.dtype), cache), "y": y}


def twin_report(dtype: str, found: Results, truth: Results, of_plain: float = 0.0) -> TwinReport:
    """Return how far a twin's results are from the truth."""
    return TwinReport(dtype, *_difference(dtype, found, truth), TOLERANCES[dtype], of_plain)


def _difference(dtype: str, found: Results, truth: Results) -> tuple[float, str]:
    """Return the largest relative difference, and the name of its tensor."""
    sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in truth.items()}
    largest = max((size for name, size in sizes.items() if name != "y"), default=0.0)
    errors = {"y": 0.0}
    for name, x in truth.items():
        if name not in found or found[name].shape != x.shape:
            return float("nan"), name
        share = 0.0 if name == "y" else SHARES[dtype] * largest
        scale = max(sizes[name], share, float(np.finfo(np.float64).tiny))
        apart = np.where(np.isnan(x) & np.isnan(found[name]), 0.0, np.abs(found[name] - x))
        errors[name] = float(apart.max(initial=0.0)) / scale
    where = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    return errors[where], where
