"""Activations in place: y where the pre-activation lay, or its derivative there and y beside it.

The derivative is computed in the forward pass, while x is in the cache, and the backward pass is
one multiplication.

GELU in float32, and its tanh form, are x / (1 + e^-u). The exponential of a very negative x
overflows, and x / infinity is the 0 that it should be: whoever calls hushes that up.

With SciPy's erf a training step with GELU takes 28 % longer on S, 12 % on M, 14 % on X (`python -m
benchmarks kernels`).
"""

from __future__ import annotations

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
"""Phi(x) = 1 / (1 + exp(-x P(x^2))), P's coefficients from the constant up.

The normal distribution function in the range of one vectorised exponential:
log(Phi / (1 - Phi)) / x is a smooth function of x^2, fitted here so that the largest error of Phi,
and of x Phi, is smallest (iteratively reweighted least squares on 20000 points from 0 to 7, weight
max(1, x / 3); last digits by trying which of them round best). That error is 3e-8 in Phi, half a
unit in the last place of float32; x P(x^2) grows without bound, so that beyond 7 Phi stays 1.
"""

EXPONENT = [-UNIT * coefficient for coefficient in LOG_ODDS]
"""The same for `EXP`: it is x times a polynomial of x^2 with these."""


def relu(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = max(0, x). The backward pass asks y for its sign, so x is free to be y.

    Parameters
    ----------
    x : array, shape (rows, width)
        Pre-activations.
    y : array
        Written to; may be `x`.
    keep : bool
        Whether x is to hold the derivative afterwards; ReLU's is in y.
    scratch : array, shape (2, rows, width)
        Overwritten.
    """
    np.maximum(x, zeros(x.shape[-1], x.dtype), out=y)


def gelu(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = x Phi(x), and x becomes Phi(x) + x Phi'(x).

    Parameters
    ----------
    x : array, shape (rows, width)
        Pre-activations; afterwards the derivative if `keep`.
    y : array
        Written to; may be `x` if not `keep`.
    keep : bool
        Whether x is to hold the derivative afterwards.
    scratch : array, shape (2, rows, width)
        Overwritten.
    """
    square, phi = scratch
    np.multiply(x, x, out=square)
    if x.dtype.char == "f":
        np.multiply(square, EXPONENT[-1], out=phi)
        for coefficient in EXPONENT[-2:0:-1]:
            phi += coefficient
            phi *= square
        phi += EXPONENT[0]
        _gate(x, phi, y, keep)
    else:
        phi[...] = erf(x * math.sqrt(0.5))  # the referee's precision has the exact one
        phi *= 0.5
        phi += 0.5
        np.multiply(x, phi, out=y)
    if not keep:
        return
    # Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi), the factor moved into the exponent
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
    """y = x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and x the derivative.

    Parameters
    ----------
    x : array, shape (rows, width)
        Pre-activations; afterwards the derivative if `keep`.
    y : array
        Written to; may be `x` if not `keep`.
    keep : bool
        Whether x is to hold the derivative afterwards.
    scratch : array, shape (2, rows, width)
        Overwritten.
    """
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
    x *= y  # 0 or near 0 for large x, before it meets their squares
    x *= square
    x += half


def tanh(x: Array, y: Array, keep: bool, scratch: Array) -> None:
    """y = tanh(x), and x becomes 1 - y^2.

    Parameters
    ----------
    x : array, shape (rows, width)
        Pre-activations; afterwards the derivative if `keep`.
    y : array
        Written to; may be `x` if not `keep`.
    keep : bool
        Whether x is to hold the derivative afterwards.
    scratch : array, shape (2, rows, width)
        Overwritten.
    """
    np.tanh(x, out=y)
    if keep:
        np.multiply(y, y, out=x)
        np.subtract(1.0, x, out=x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "tanh": tanh}
"""By the names that ``EncoderConfig(activation=...)`` takes."""
