"""Wrong activations."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

import math
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context
from npformer.layers import GELU


class GELUThatIgnoresItsOption(GELU):
    """GELU computes its tanh form although the exact form was asked for.

    Who: Someone who adds an option and leaves the old line in place.
    Why: x Phi(x) and its tanh form differ by up to 5e-4, so weights trained with one form run with
    the other.
    Cost: Results agree with other libraries to three digits only.
    Caught: Known values. No gradient check, because the backward pass is that of the same form.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.gelu(x, approximate="tanh")


class GELUWithAPower(GELU):
    """GELU computes a cube as x**3.

    Who: Everyone: the formula is printed that way.
    Why: The result is the same, but NumPy calls pow for each entry, while x * x * x multiplies
    whole vectors. (NumPy has a fast path for x**2, but none for x**3.)
    Cost: It takes many times as long. With x = np.linspace(-4, 4, 1_000_000,
    dtype='f'), compare timeit x**3 with timeit x * x * x in IPython.
    Caught: A check of the source code. No number is wrong.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        t = np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))
        return 0.5 * x * (1.0 + t), ("tanh", x, t)
