"""Wrong activations."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context
from npformer.layers import GELU


class GELUThatIgnoresItsOption(GELU):
    """GELU ignores that the exact form was asked for.

    Parameters
    ----------
    approximate
        As in `GELU`.

    Notes
    -----
    Who: Someone who adds an option and leaves the old line in place.

    Why: x Phi(x) and its tanh form differ by up to 5e-4: weights trained with one are run with the
    other.

    Cost: Results that agree with nobody's to more than three digits.

    Caught: By no gradient check, for the backward pass is that of the other form, but by values:
    `gelu_is_the_one_that_was_asked_for`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.gelu(x, approximate="tanh")


class GELUWithAPower(GELU):
    """GELU writes a cube as x**3.

    Parameters
    ----------
    approximate
        As in `GELU`; it is the tanh form.

    Notes
    -----
    Who: Everyone: it is how the formula is printed.

    Why: The same number. But a power of a float goes through pow, a call for each entry, where
    x * x * x is two vector instructions. (x**2 has a short cut of its own in NumPy, x**3 none.)

    Cost: More than a hundred times the time. With `x = np.linspace(-4, 4, 1_000_000, dtype='f')`,
    compare `timeit x**3` with `timeit x * x * x` in IPython.

    Caught: By no number at all, but by whoever reads the source: `no_power_of_an_array`.
    """

    def __init__(self, approximate: str = "tanh") -> None:
        super().__init__(approximate)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        t = np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))
        return 0.5 * x * (1.0 + t), ("tanh", x, t)
