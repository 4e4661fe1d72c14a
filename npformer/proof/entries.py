"""The numbers behind the report of a tensor, for whoever wants to look at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = tuple(10.0**-k for k in range(1, 13))
"""Steps of central differences: errors against them have the shape of a V."""

STEP_COUNT = 3
"""How many entries have their differences taken over all steps."""


@dataclass(frozen=True, eq=False, repr=False)
class Entries:
    """What was compared of one tensor.

    The arrays have the tensor's shape, with NaN where nothing was computed. A large tensor is
    compared along random directions, and few or none of its entries by themselves.
    """

    gradient: np.ndarray  # from the backward pass
    derivative: np.ndarray  # from central differences
    exact: np.ndarray  # by the complex step
    corners: np.ndarray  # bool: slopes on the two sides differ
    along_directions: np.ndarray  # (2, directions): from the backward pass, and from differences
    scale: float  # what errors are divided by
    central: Callable[[int, float], float] | None = None  # (index, h) -> the central difference

    @property
    def error(self) -> np.ndarray:
        """The relative error of each entry: 0 at corners, NaN where nothing was compared."""
        error = np.where(self.corners, 0.0, np.abs(self.gradient - self.derivative))
        return np.asarray(error / self.scale)

    @property
    def complex_error(self) -> np.ndarray:
        """The relative error against the complex step; NaN where there is none."""
        return np.asarray(np.abs(self.gradient - self.exact) / self.scale)

    @property
    def zeros(self) -> np.ndarray:
        """Where the backward pass and the differences are both 0, so that little is shown."""
        return np.asarray((self.gradient == 0.0) & (np.abs(self.derivative) <= 1e-9 * self.scale))

    def entries_to_step(self) -> list[int]:
        """Return the flat indices of entries whose steps are worth a look.

        They are those with the largest error, the largest derivative, and one in the middle. Of a
        tensor whose entries were not compared, the gradient chooses.
        """
        known = np.flatnonzero(np.isfinite(self.derivative) & ~self.corners)
        if not known.size:
            by_size = np.argsort(np.abs(self.gradient), axis=None, kind="stable")
            by_size = by_size[~self.corners.flat[by_size]]
            return [int(by_size[-1]), int(by_size[len(by_size) // 2])] if by_size.size > 1 else []
        by_size = known[np.argsort(np.abs(self.derivative.flat[known]), kind="stable")]
        errors = np.nan_to_num(self.error.flat[known], nan=np.inf)
        chosen = [known[np.argmax(errors)], by_size[-1], by_size[len(by_size) // 2]]
        return list(dict.fromkeys(map(int, chosen)))[:STEP_COUNT]

    def errors_by_step(self, index: int) -> np.ndarray:
        """Return relative errors of central differences, a row for each of `STEPS`.

        The first column is the distance from the complex step, NaN without one, and the second the
        distance from the backward pass. The function is evaluated anew, so its layer must still
        have the parameters that were checked, by object if not by value.
        """
        if self.central is None:
            return np.full((len(STEPS), 2), np.nan)
        numeric = np.array([self.central(index, h) for h in STEPS])
        truths = np.array([self.exact.flat[index], self.gradient.flat[index]])
        return np.asarray(np.abs(numeric[:, None] - truths) / self.scale)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function, which cannot be stored."""
        return {**self.__dict__, "central": None}
