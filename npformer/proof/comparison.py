"""Compare all gradients of a problem with differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from npformer.core import checks
from npformer.proof.across_patterns import locate
from npformer.proof.blind_spots import (
    FLOAT32_STEP,
    FLOAT32_TOLERANCE,
    compare_zeros_elsewhere,
    rounded_to,
)
from npformer.proof.central_difference import STEP
from npformer.proof.evidence import Evidence
from npformer.proof.finite_differences import Probe
from npformer.proof.naming import name_errors
from npformer.proof.problem import Problem
from npformer.proof.report import GradcheckReport, TensorReport, wrong_among
from npformer.proof.results import Results
from npformer.proof.twincheck import TwinReport

STREAM = b"gradcheck"
"""Makes v differ from what default_rng(seed) draws: it may be x. With v = x the gradient of W in
x W is x^T x, which is symmetric, and its transpose would pass."""

NO_DERIVATIVE = 1e-6
"""A derivative of at most this share of the largest is taken for 0."""


@dataclass(frozen=True)
class Settings:
    """How gradients are compared; see `gradcheck`."""

    seed: int
    tolerance: float
    complex_tolerance: float | None
    max_entries: int
    directions: int

    def __post_init__(self) -> None:
        checks.positive("directions", self.directions)
        checks.whole("max_entries", self.max_entries, at_least=0)
        checks.whole("seed", self.seed, at_least=0)
        checks.number("tolerance", self.tolerance, above=0.0)
        if self.complex_tolerance is not None:
            checks.number("complex_tolerance", self.complex_tolerance, above=0.0)


class Comparison:
    """The gradients of a problem beside central differences and the complex step."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem = problem
        self.settings = settings
        self.tolerance = float(settings.tolerance)
        self.complex_tolerance = settings.complex_tolerance
        if self.complex_tolerance is not None:
            self.complex_tolerance = float(self.complex_tolerance)
        self.step = STEP
        self.rng = np.random.default_rng([settings.seed, *STREAM])
        self.v = self._draw_v()
        self.tensors: list[TensorReport] = []
        self.broken_rules: list[str] = []
        self.notes: list[str] = []
        self.without_gradient: list[str] = []  # tensors that y depends on, though they have none
        self.rounded = ""  # what is wrong if y is rounded to float32
        self.not_analytic = ""  # why there is no complex step

    def _draw_v(self) -> np.ndarray:
        """Return the random v in L = sum(y * v)."""
        shape = np.shape(self.problem.forward()[0])
        v = np.asarray(self.rng.normal(size=shape))
        if v.size == 0:
            raise ValueError(
                f"{self.problem.title} returned shape {v.shape}, so there is nothing to check; "
                "expected at least one sample"
            )
        return np.ones(shape) if self.problem.unit_dy else v

    def run(self, y: np.ndarray, gradients: Results, numbers: Mapping[str, float]) -> None:
        """Compare all gradients; None, which `gradients` lacks, is compared as zeros.

        `numbers` are those of the code, by their names: an error may be a multiple by one of them.
        """
        if dtype := rounded_to(self.problem, y):
            self._use_coarse_differences(dtype)
        for name, array in self.problem.arrays.items():
            gradient = gradients.get(name, np.zeros(array.shape))
            if gradient.shape != array.shape:
                self.broken_rules.append(
                    f"the gradient of {name} has shape {gradient.shape}, not {array.shape}"
                )
                continue
            probe = self._probe(self.problem, name, gradient, y, gradients)
            tensor = probe.check(self.rng, self.settings.max_entries, self.settings.directions)
            passes = tensor.passes(self.tolerance, self.complex_tolerance)
            if name not in gradients and not passes:  # y depends on it
                self.without_gradient.append(name)
                continue
            self.tensors.append(tensor)
            self.not_analytic = self.not_analytic or probe.not_analytic
        if self.tensors and all(t.no_derivative == math.prod(t.shape) for t in self.tensors):
            self.broken_rules.append(
                "nothing was checked: no entry has a derivative. Pass other values"
            )
        self.tensors, notes = compare_zeros_elsewhere(
            self.problem, self.v, self.tensors, self._check_elsewhere
        )
        self.notes += notes
        self._name_errors(y, gradients, numbers)

    def _name_errors(self, y: np.ndarray, gradients: Results, numbers: Mapping[str, float]) -> None:
        """Add to the reports of wrong tensors what kind of error they have, or where it begins."""
        evidence = Evidence(inputs=self.problem.arrays, numbers=numbers, dy=self.v, y=y)
        if self.rounded:
            evidence = replace(evidence, strict=FLOAT32_TOLERANCE)
        self.tensors = name_errors(
            self.problem,
            gradients,
            self.tensors,
            evidence,
            self.tolerance,
            self.complex_tolerance,
            self.step,
        )
        wrong = self.wrong_tensors()
        patterns = {tensor.pattern for tensor in wrong}
        if "" in patterns or len(wrong) > len(patterns) == 1:  # one error, seen in many tensors
            names = [tensor.name for tensor in self.tensors if self._is_judged(tensor)]
            place = locate(names, [tensor.name for tensor in wrong])
            self.notes += filter(None, [place])

    def _is_judged(self, tensor: TensorReport) -> bool:
        """Whether a tensor is wrong, or has a derivative of which any error would be seen.

        That of attention's key bias is 0, so it is right also behind an error.
        """
        largest = max((other.largest for other in self.tensors), default=0.0)
        return tensor in self.wrong_tensors() or tensor.largest > NO_DERIVATIVE * largest

    def wrong_tensors(self) -> list[TensorReport]:
        """Return the reports of tensors whose gradients are wrong."""
        return wrong_among(self.tensors, self.tolerance, self.complex_tolerance)

    def broken_by_pair(self) -> list[str]:
        """Return the rules that a layer or a pair has broken by its results."""
        missing = [
            f"the backward pass returned None as the gradient of {name}"
            for name in self.without_gradient
        ]
        return [*self.broken_rules, *missing, *filter(None, [self.rounded])]

    def report(
        self,
        broken_rules: list[str],
        twins: tuple[TwinReport, ...] = (),
        protocol: tuple[str, ...] = (),
        derivative_alone: bool = False,
    ) -> GradcheckReport:
        """Return the report, with the rules that are broken and what else was found."""
        return GradcheckReport(
            title=self.problem.title,
            tensors=self.tensors,
            broken_rules=broken_rules,
            tolerance=self.tolerance,
            complex_tolerance=self.complex_tolerance,
            not_analytic=self.not_analytic,
            twins=twins,
            notes=tuple(self.notes),
            protocol=protocol,
            derivative_alone=derivative_alone,
        )

    def _use_coarse_differences(self, dtype: str) -> None:
        self.step = FLOAT32_STEP
        self.tolerance = max(self.tolerance, FLOAT32_TOLERANCE)
        self.complex_tolerance = None
        self.rounded = (
            f"y has the digits of {dtype}, though all arrays are float64: differences cannot judge "
            f"its gradient to more than {FLOAT32_TOLERANCE:g}. Look for a cast or an array of "
            "float32 in the forward pass"
        )

    def _probe(
        self,
        problem: Problem,
        name: str,
        gradient: np.ndarray,
        y: np.ndarray,
        gradients: Results,
    ) -> Probe:
        return Probe(
            problem=problem,
            name=name,
            gradient=gradient,
            y=y,
            v=self.v,
            floor=_smallest_scale(y, gradients),
            tolerance=self.tolerance,
            complex_tolerance=self.complex_tolerance,
            step=self.step,
        )

    def _check_elsewhere(
        self, moved: Problem, name: str, gradient: np.ndarray, y: np.ndarray, gradients: Results
    ) -> TensorReport:
        probe = self._probe(moved, name, gradient, y, gradients)
        probe.complex_tolerance = None  # it would start from the original inputs
        return probe.check(self.rng, self.settings.max_entries, self.settings.directions)


def _smallest_scale(y: np.ndarray, gradients: Results) -> float:
    """Return the least that an error is measured against.

    If a gradient is exactly 0, its difference is only rounding, about eps |y| / h. So errors are
    also measured against the other tensors' gradients and against y.
    """
    largest = max((np.abs(g).max(initial=0.0) for g in gradients.values()), default=0.0)
    return float(max(1e-3 * largest, 1e-4 * np.abs(y).max(initial=0.0)))
