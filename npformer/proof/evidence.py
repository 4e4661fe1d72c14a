"""A wrong gradient beside the derivative, and whether a formula explains the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

STRICT = 1e-4
"""What a formula may leave unexplained: this share of the error, both as norms."""


class Pattern(NamedTuple):
    """What kind of error a gradient has."""

    kind: str  # a short name, such as "transposed"
    words: str  # what is wrong, as a clause


@dataclass(frozen=True)
class Evidence:
    """What is known of a function beside the gradients of one tensor. All of it may be missing.

    With y of L = sum(y * dy), the Jacobian of a tensor has the tensor's shape followed by that of
    y: entry [i, j] is the derivative of y[j] with respect to the tensor's entry i.
    """

    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)  # parameters, ids, masks, too
    numbers: Mapping[str, float] = field(default_factory=dict)  # settings, such as p
    dy: np.ndarray | None = None
    y: np.ndarray | None = None
    jacobian: np.ndarray | None = None
    strict: float = STRICT  # what a formula may leave unexplained


@dataclass(frozen=True)
class WrongGradient:
    """The two gradients of one tensor, NaN where one is unknown."""

    name: str
    analytic: np.ndarray  # from the backward pass
    numeric: np.ndarray  # from differences
    evidence: Evidence

    @cached_property
    def comparable(self) -> np.ndarray:
        """Where both are numbers."""
        return np.asarray(np.isfinite(self.analytic) & np.isfinite(self.numeric))

    @cached_property
    def error(self) -> np.ndarray:
        """The difference, 0 where it is unknown."""
        return np.where(self.comparable, self.analytic - self.numeric, 0.0)

    def explains(self, candidate: np.ndarray) -> bool:
        """Return whether a formula gives what the backward pass gave.

        It may be NaN in at most half of the known entries.
        """
        compared = self.comparable & np.isfinite(candidate)
        if 2 * compared.sum() < self.comparable.sum() or not compared.any():
            return False
        error = float(np.linalg.norm(self.error[compared]))
        rest = float(np.linalg.norm((self.analytic - candidate)[compared]))
        return error > 0.0 and rest <= self.evidence.strict * error

    def multiple(self, candidate: np.ndarray) -> float | None:
        """Return the factor with which a formula gives what the backward pass gave, or None."""
        compared = self.comparable & np.isfinite(candidate)
        values = candidate[compared]
        square = float(values @ values)
        if not square or np.count_nonzero(np.abs(values) > 1e-6 * np.abs(values).max()) < 2:
            return None
        factor = float(values @ self.analytic[compared]) / square
        return factor if factor and self.explains(factor * candidate) else None
