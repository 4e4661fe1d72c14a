"""Compare a layer with its twin, the engine's version of it."""

from dataclasses import dataclass

import numpy as np

from npformer.proof.problem import Problem
from npformer.proof.results import TOLERANCES, Results, difference, results_of
from npformer.proof.rules import check_rules

PLAIN_FACTOR = 10.0
"""In float32 a twin's error may be this many times the plain layer's own error in float32: where
both are large, the function itself loses the digits."""


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
    problem: Problem, v: np.ndarray, truth: Results, of_plain: float | None
) -> tuple[list[TwinReport], list[str]]:
    """Compare a twin with its layer's results in float64; return reports and broken rules.

    `of_plain` is the layer's own error in float32; None if it does not run in float32.
    """
    y, gradients, broken = check_rules(problem, v)
    reports = [twin_report("float64", {**gradients, "y": y}, truth)]
    if of_plain is not None:
        with problem.convert_to_float32() as single:
            reports.append(twin_report("float32", results_of(single, v), truth, of_plain))
    return reports, broken


def twin_report(dtype: str, results: Results, truth: Results, of_plain: float = 0.0) -> TwinReport:
    """Return how far a twin's results are from the truth."""
    return TwinReport(dtype, *difference(dtype, results, truth), TOLERANCES[dtype], of_plain)
