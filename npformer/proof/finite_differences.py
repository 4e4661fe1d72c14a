"""Compare the gradient of one array with central differences and with the complex step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.proof import complex_step
from npformer.proof.central_difference import STEP, Slopes, central_difference
from npformer.proof.complex_step import NotAnalytic
from npformer.proof.entries import Entries
from npformer.proof.problem import Problem
from npformer.proof.report import TensorReport

FEWEST_DIRECTIONS = 4
"""With fewer, the errors along directions are in proportion to many an entry."""

IN_PROPORTION = 0.9999
"""The least cosine between errors along directions and one entry of them, if it is the cause."""

TINY = float(np.finfo(np.float64).tiny)  # the smallest divisor


@dataclass
class Probe:
    """Derivatives of L = sum(y * v) when one array moves."""

    problem: Problem
    name: str
    gradient: np.ndarray  # from the backward pass
    y: np.ndarray
    v: np.ndarray
    floor: float  # errors are relative to the largest derivative, but at least to this
    tolerance: float
    complex_tolerance: float | None  # None skips the complex step
    step: float = STEP
    not_analytic: str = ""  # why there is no complex step

    def __post_init__(self) -> None:
        self.array = self.problem.arrays[self.name]

    def check(self, rng: np.random.Generator, max_entries: int, directions: int) -> TensorReport:
        """Check the array entry by entry, or, if it is large, along random directions."""
        size = self.array.size
        if size <= max_entries:
            return self._entries(np.arange(size), f"all {size} entries")
        drawn = [rng.normal(size=self.array.shape) for _ in range(directions)]
        units = [u / np.linalg.norm(u) for u in drawn]
        along_directions = self._report(f"{directions} directions", units)
        if along_directions.passes(self.tolerance, self.complex_tolerance):
            return along_directions
        n = min(size, 4 * max_entries)  # look for a wrong entry one by one
        indices = np.sort(rng.choice(size, size=n, replace=False))
        by_entry = self._entries(indices, f"{n} entries")
        if not by_entry.passes(self.tolerance, self.complex_tolerance):
            return by_entry
        index = _find_single_entry(units, along_directions.entries)
        if index is None:
            return along_directions
        with_it = self._entries(np.union1d(indices, [index]), f"{n + 1} entries")
        if with_it.passes(self.tolerance, self.complex_tolerance):  # then it is not the cause
            return along_directions
        return with_it

    def _entries(self, indices: np.ndarray, checked: str) -> TensorReport:
        units = [np.zeros(self.array.shape) for _ in indices]
        for u, i in zip(units, indices, strict=True):
            u.flat[i] = 1.0
        return self._report(checked, units, indices)

    def _report(
        self, checked: str, units: list[np.ndarray], indices: np.ndarray | None = None
    ) -> TensorReport:
        if not units:
            return TensorReport(self.name, self.array.shape, checked, 0.0, None, 0.0, 0.0, 0, 0.0)
        analytic = np.array([(self.gradient * u).sum() for u in units])
        numeric, corners, errors, scale = self._differences(units, analytic)
        if corners.sum() > 1:
            self._compare_ties(units, analytic, numeric, corners, errors, scale)
        exact = self._exact(units, analytic, corners)
        # If differences and backward pass agree, a complex step that is far off is the wrong one.
        agree = ~corners & (errors <= self.tolerance)
        if exact is not None and np.any(
            np.abs(exact - numeric)[agree] > 100.0 * self.tolerance * scale
        ):
            exact = None
            self.not_analytic = "its forward pass computes something else with complex numbers"
        complex_errors = None if exact is None else np.abs(analytic - exact) / scale
        largest = _worst(errors)
        worst = largest
        if complex_errors is not None and errors[largest] <= self.tolerance:
            worst = _worst(complex_errors)
        where = None if indices is None else np.unravel_index(indices[worst], self.array.shape)
        return TensorReport(
            name=self.name,
            shape=self.array.shape,
            checked=checked,
            error=float(errors[largest]),
            where=None if where is None else tuple(map(int, where)),
            analytic=float(analytic[worst]),
            numeric=float(numeric[worst]),
            no_derivative=int(corners.sum()),
            largest=float(np.abs([analytic, numeric]).max()),
            complex_error=None if complex_errors is None else float(complex_errors.max()),
            entries=self._keep(indices, analytic, numeric, exact, corners, scale),
        )

    def _keep(
        self,
        indices: np.ndarray | None,
        analytic: np.ndarray,
        numeric: np.ndarray,
        exact: np.ndarray | None,
        corners: np.ndarray,
        scale: float,
    ) -> Entries:
        """Return what was compared, entry by entry where it was entries."""
        shape = self.array.shape
        derivative, by_complex_step = np.full((2, *shape), np.nan)
        is_corner = np.zeros(shape, dtype=bool)
        along_directions = np.array([analytic, numeric])
        if indices is not None:
            derivative.flat[indices] = numeric
            is_corner.flat[indices] = corners
            if exact is not None:
                by_complex_step.flat[indices] = exact
            along_directions = along_directions[:, :0]
        return Entries(
            gradient=self.gradient.astype("float64"),
            derivative=derivative,
            exact=by_complex_step,
            corners=is_corner,
            along_directions=along_directions,
            scale=scale,
            central=self.central,
        )

    def central(self, index: int, h: float) -> float:
        """Return the central difference of an entry over a step, at the values that were checked.

        Those are restored for it, and then replaced with the values of today.
        """
        u = np.zeros(self.array.shape)
        u.flat[index] = 1.0
        arrays = list(self.problem.arrays.values())
        values = [x.copy() for x in arrays]
        try:
            for x, original in zip(arrays, self.problem.originals, strict=False):
                x[...] = original
            return self._slopes(u, shrink=self.step / h).central
        finally:
            for x, value in zip(arrays, values, strict=True):
                x[...] = value

    def _differences(
        self, units: list[np.ndarray], analytic: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the central differences, which are at corners, the errors, and their scale."""
        numeric = np.array([self._slopes(u).central for u in units])
        corners, looked_at = np.zeros((2, len(units)), dtype=bool)
        while True:  # corners do not count in the scale: each one found may reveal smaller errors
            smooth = np.abs([analytic[~corners], numeric[~corners]])
            scale = max(float(smooth.max(initial=0.0)), self.floor, TINY)
            errors = np.where(corners, 0.0, np.abs(analytic - numeric) / scale)
            suspects = np.flatnonzero(~(errors <= self.tolerance) & ~looked_at)
            if not suspects.size:
                return numeric, corners, errors, scale
            looked_at[suspects] = True
            for j in suspects:
                numeric[j], corners[j] = self._look_closer(units[j], analytic[j], scale)
            if corners[suspects].any():
                looked_at[:] = corners  # look at the others again, with the new scale

    def _compare_ties(
        self,
        units: list[np.ndarray],
        analytic: np.ndarray,
        numeric: np.ndarray,
        corners: np.ndarray,
        errors: np.ndarray,
        scale: float,
    ) -> None:
        """Move all corners together, and write a difference over the first of them.

        Ties that move together may have a derivative: the sum of their gradients.
        """
        first = np.flatnonzero(corners)[0]
        tied = np.sum([units[j] for j in np.flatnonzero(corners)], axis=0)
        slopes = self._slopes(tied)
        sum_of_gradients = float(analytic[corners].sum())
        difference = abs(sum_of_gradients - slopes.central)
        if difference > max(self.tolerance * scale, 10.0 * slopes.gap):
            analytic[first] = sum_of_gradients
            numeric[first] = slopes.central
            errors[first] = difference / scale

    def _exact(
        self, units: list[np.ndarray], analytic: np.ndarray, corners: np.ndarray
    ) -> np.ndarray | None:
        """Return the derivatives by the complex step, or None if it does not apply."""
        if self.complex_tolerance is None:
            return None
        exact = analytic.copy()  # not computed at corners
        try:
            with self.problem.convert_arrays(complex_step.complex_copy) as on_complex:
                x = on_complex.arrays[self.name]
                for j in np.flatnonzero(~corners):
                    dy = complex_step.derivative(on_complex.forward, x, units[j])
                    exact[j] = (dy * self.v).sum()
        except NotAnalytic as reason:
            self.not_analytic = str(reason)
            return None
        return exact

    def _slopes(self, u: np.ndarray, shrink: float = 1.0) -> Slopes:
        """Return the slopes of L along u from below and from above, each over a smaller step."""
        h = self.step / shrink

        def f() -> Any:
            return self.problem.forward()[0]

        below, above = central_difference(f, self.array, u, self.v, y=self.y, h=h)
        x = self.array
        return Slopes(
            below + self._rounding_loss(u, x - h * u, x, h),
            above + self._rounding_loss(u, x, x + h * u, h),
        )

    def _rounding_loss(self, u: np.ndarray, low: np.ndarray, high: np.ndarray, h: float) -> float:
        """Return the part of a slope that is lost because x + h u is rounded.

        It is the gradient from the backward pass times the missing part of u. If more than a tenth
        of u is missing, the result is NaN: too little is left to check that gradient.
        """
        moved = (u != 0.0) & np.isfinite(low) & np.isfinite(high)
        missing = u[moved] - (high[moved] - low[moved]) / h
        if np.abs(missing).max(initial=0.0) > 0.1 * np.abs(u).max():
            return math.nan
        return float((self.gradient[moved] * missing).sum())

    def _look_closer(self, u: np.ndarray, analytic: float, scale: float) -> tuple[float, bool]:
        """Tell a wrong gradient from a corner: return (numeric derivative, whether a corner).

        As the step shrinks, the slopes from below and above approach each other, unless there is a
        corner. There, any value between them is accepted.
        """
        slopes = self._slopes(u)
        gap, numeric = slopes.gap, slopes.central
        size = float(np.abs(self.array).max(initial=0.0))
        for shrink in (8.0, 64.0, *([1.0 / size] if 0.0 < size < 1.0 / 64.0 else [])):
            closer = self._slopes(u, shrink)
            if np.isnan(closer).any():  # the step is lost in the rounding of x
                continue
            if abs(analytic - closer.central) / scale <= self.tolerance:
                return closer.central, False
            if shrink <= 64.0:  # smaller steps, for tiny x, are too noisy to judge a corner by
                slopes, numeric = closer, closer.central
        slack = self.tolerance * scale
        stays = slopes.gap > max(0.5 * gap, 1e3 * slack)
        if stays and min(slopes) - slack <= analytic <= max(slopes) + slack:
            return analytic, True
        return numeric, False


def _find_single_entry(units: list[np.ndarray], entries: Entries | None) -> int | None:
    """Return the entry that is wrong, if it is the only one; None if several are.

    If the gradient is wrong by w in entry i alone, its error along a direction u is w u[i], so the
    errors along all directions are in proportion to what they have in i.
    """
    if entries is None or len(units) < FEWEST_DIRECTIONS:
        return None
    errors = entries.along_directions[0] - entries.along_directions[1]
    if not np.isfinite(errors).all():
        return None
    components = np.stack([u.reshape(-1) for u in units])
    cosines = np.abs(errors @ components)
    cosines /= np.linalg.norm(errors) * np.maximum(np.linalg.norm(components, axis=0), TINY)
    best = int(np.argmax(cosines))
    return best if cosines[best] > IN_PROPORTION else None


def _worst(errors: np.ndarray) -> int:
    return int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
