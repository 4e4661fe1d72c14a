"""The central difference: a derivative by two more evaluations of the function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEP = float(np.finfo(np.float64).eps ** (1 / 3))
"""Balances rounding, eps / h, and truncation, h^2."""


class Slopes(NamedTuple):
    """Slopes of a function over a step to each side. At a corner they differ."""

    below: float  # (L(x) - L(x - h u)) / h
    above: float  # (L(x + h u) - L(x)) / h

    @property
    def central(self) -> float:
        """The central difference, (L(x + h u) - L(x - h u)) / 2h."""
        return 0.5 * (self.below + self.above)

    @property
    def gap(self) -> float:
        """How far the two sides are apart."""
        return abs(self.above - self.below)


def central_difference(
    f: Callable[[], Any], x: np.ndarray, u: Any, v: Any = 1.0, *, y: Any = None, h: float = STEP
) -> Slopes:
    """Return the derivative of L = sum(f() * v) when x moves along u, by a central difference.

    Its error is about ``h^2 |L'''| / 6`` from truncation, and ``eps |L| / h`` from rounding.

    Parameters
    ----------
    f : callable
        Takes nothing and returns y, a number or an array, for the values that x has.
    x : float64 array
        Changed in place, and restored.
    u, v : array or float
        The direction, of the shape of x, and the weights of y's entries.
    y : array, optional
        f() at x, if it is known.
    h : float
        The step.

    Examples
    --------
    >>> x = np.array([2.0])
    >>> round(central_difference(lambda: x**3, x, 1.0).central, 6)      # 3 x^2
    12.0
    """
    y, start = (f() if y is None else y), x.copy()
    try:
        x[...] = start - h * u
        low = np.array(f())
        x[...] = start + h * u
        high = np.array(f())
    finally:
        x[...] = start
    # Subtract before summing: outputs that do not depend on x along u cancel exactly.
    return Slopes(float(((y - low) * v).sum()) / h, float(((high - y) * v).sum()) / h)
