"""Activations in place: each is called as ``activate(x, y, keep, scratch)`` and writes into y.

x, of shape (rows, width), holds the pre-activations. With `keep` it is overwritten with the
derivative, which leaves one multiplication to the backward pass. Without `keep`, y may be x.
`scratch`, of shape (2, rows, width), is overwritten.

GELU in float32, its tanh form and SiLU are computed as x / (1 + e^-u). For a very negative x the
exponential overflows, and x / infinity is 0, as it should be; the caller silences that warning.

With SciPy's erf a training step with GELU takes 28 % longer on S, 12 % on M, 14 % on X (`python -m
benchmarks kernels`).
"""

import math

import numpy as np

from npformer.core import Array, erf
from npformer.engine.cpu.rows import EXP, UNIT, zeros

LOG_ODDS = (
    1.59576989e00,
    7.26660517e-02,
    -6.50424247e-05,
    -1.10695548e-04,
    7.94852781e-06,
    -2.66345682e-07,
    3.57304299e-09,
)
"""Phi(x) = 1 / (1 + exp(-x P(x^2))): P's coefficients, the constant first.

The normal distribution function at the cost of one vectorised exponential:
log(Phi / (1 - Phi)) / x is a smooth function of x^2, fitted so that the largest error of Phi, and
of x Phi, is smallest (iteratively reweighted least squares on 20000 points from 0 to 7, weight
max(1, x / 3); the last digits are those found to round best). The error is 3e-8 in Phi, half a
unit in the last place of float32. x P(x^2) grows without bound, so Phi stays 1 beyond 7.
"""

FEW = 2048
"""Up to this many numbers SciPy's erf takes less time than the polynomial, which is more calls."""

EXPONENT = [-UNIT * coefficient for coefficient in LOG_ODDS]
"""The coefficients of -P in the units of `EXP`: EXP(x times this polynomial) is e^(-x P(x^2))."""


def relu(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = max(0, x). The derivative is y > 0, so x is not needed and may be y."""
    np.maximum(x, zeros(x.shape[-1], x.dtype), out=y)


def gelu(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = x Phi(x), and x becomes Phi(x) + x Phi'(x)."""
    square, phi = scratch
    np.multiply(x, x, out=square)
    if x.dtype.char == "f" and x.size > FEW:
        np.multiply(square, EXPONENT[-1], out=phi)
        for coefficient in EXPONENT[-2:0:-1]:
            phi += coefficient
            phi *= square
        phi += EXPONENT[0]
        _gate(x, phi, y, keep)
    else:
        phi[...] = erf(x * math.sqrt(0.5))  # exact, because float32 is checked against float64
        phi *= 0.5
        phi += 0.5
        np.multiply(x, phi, out=y)
    if not keep:
        return
    # Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi), with the factor moved into the exponent
    square *= -0.5 * UNIT
    square -= 0.5 * math.log(2.0 * math.pi) * UNIT
    EXP(square, out=square)
    x *= square
    x += phi


def _gate(x: Array, slope: Array, y: Array, keep: bool) -> None:
    """y = x / (1 + EXP(x slope)); `slope` becomes the gate, 1 / (1 + EXP(x slope)), if `keep`."""
    slope *= x
    EXP(slope, out=slope)
    slope += 1.0
    np.divide(x, slope, out=y)
    if keep:
        np.divide(1.0, slope, out=slope)


def gelu_tanh(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and x becomes y'."""
    root = math.sqrt(2.0 / math.pi)
    square, half = scratch
    np.multiply(x, x, out=square)
    np.multiply(square, -2.0 * 0.044715 * root * UNIT, out=half)
    half -= 2.0 * root * UNIT
    _gate(x, half, y, keep)  # h = (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u))
    if not keep:
        return
    # y' = h + x h', and h' = 2 h (1 - h) u'
    square *= 2.0 * 3.0 * 0.044715 * root
    square += 2.0 * root
    np.subtract(1.0, half, out=x)
    x *= y  # before the square, which may overflow: (1 - h) y is near 0 for large |x|
    x *= square
    x += half


def silu(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = x s with s = 1 / (1 + e^-x), and x becomes s + y (1 - s)."""
    s, _ = scratch
    s[...] = -UNIT
    _gate(x, s, y, keep)
    if keep:
        np.subtract(1.0, s, out=x)
        x *= y
        x += s


def tanh(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = tanh(x), and x becomes 1 - y^2."""
    np.tanh(x, out=y)
    if keep:
        np.multiply(y, y, out=x)
        np.subtract(1.0, x, out=x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "tanh": tanh}
"""By the names that ``EncoderConfig(activation=...)`` takes."""
