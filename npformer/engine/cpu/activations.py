"""Bias and activation in place: each is called as ``activate(x, b, y, keep)`` and writes into y.

x, of shape (rows, width), holds products, to which the bias b is added. With `keep` it is then
overwritten with the derivative, which leaves one multiplication to the backward pass. y may be x,
for relu always, else without `keep`.

GELU in float32, its tanh form and SiLU are computed as x / (1 + e^-u). For a very negative x the
exponential overflows, and x / infinity is 0, as it should be.

SciPy's erf, which is used where float64 or few numbers ask for it, is not vectorised.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from npformer.core import Array, erf
from npformer.engine.cpu.loops import exp, scalar
from npformer.engine.cpu.rows import EXP, FUSED, UNIT, leaf, pieces, scratch, zeros

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

P = tuple(np.float32(coefficient) for coefficient in LOG_ODDS)
ONE, ROOT_HALF = np.float32(1.0), math.sqrt(0.5)


def _normal_distribution(x: Any) -> Any:
    s = x * x
    p = P[6]
    p = p * s + P[5]
    p = p * s + P[4]
    p = p * s + P[3]
    p = p * s + P[2]
    p = p * s + P[1]
    p = p * s + P[0]
    return ONE / (ONE + exp(-x * p))


@scalar(_normal_distribution)
def normal_distribution(x: Any) -> Any:
    """Phi(x), in a loop."""
    return 0.5 * (1.0 + math.erf(x * ROOT_HALF))


def in_pieces(activate: Callable[..., None]) -> Callable[..., None]:
    """Return passes that call ``activate(x, y, keep, space)`` for a piece of rows at a time.

    `space`, of shape (2, rows, width), is overwritten.
    """

    @wraps(activate)
    def passes(x: Array, b: Array, y: Array, keep: bool) -> None:
        with np.errstate(over="ignore"):  # x^12 and e^-u may overflow; x / infinity is 0
            for piece in pieces(len(x), x.shape[1]):
                z = x[piece]
                z += b
                activate(z, y[piece], keep, scratch(2 * z.size, z.dtype).reshape(2, *z.shape))

    return passes


def _relu_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j] + b[j]
            x[i, j] = x.dtype.type(0.0) if v <= 0.0 else v  # NaN remains


@leaf(_relu_loop, FUSED)
@in_pieces
def bias_relu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Stands for `functional.relu`: y = max(0, x). The derivative is y > 0."""
    np.maximum(x, zeros(x.shape[-1], x.dtype), out=y)


def _gelu_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    scale = x.dtype.type(1.0 / math.sqrt(2.0 * math.pi))
    half = x.dtype.type(0.5)
    v, phi = np.empty_like(x[0]), np.empty_like(x[0])  # a row, because y may be x
    for i in range(x.shape[0]):
        slope, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = slope[j] + b[j]
            phi[j] = normal_distribution(v[j])
        for j in range(x.shape[1]):
            out[j] = v[j] * phi[j]
        if keep:
            for j in range(x.shape[1]):
                slope[j] = phi[j] + v[j] * (scale * exp(-half * v[j] * v[j]))


@leaf(_gelu_loop, FUSED)
@in_pieces
def bias_gelu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Stands for `functional.gelu`: y = x Phi(x), and x becomes Phi(x) + x Phi'(x)."""
    square, phi = space
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


def _gelu_tanh_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1.0)
    root = x.dtype.type(2.0 * math.sqrt(2.0 / math.pi))
    cube = x.dtype.type(2.0 * 0.044715 * math.sqrt(2.0 / math.pi))
    twice = x.dtype.type(3.0 * 2.0 * 0.044715 * math.sqrt(2.0 / math.pi))
    v, gate = np.empty_like(x[0]), np.empty_like(x[0])
    for i in range(x.shape[0]):
        slope, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = slope[j] + b[j]
            gate[j] = one + exp(-v[j] * (root + cube * (v[j] * v[j])))
        for j in range(x.shape[1]):
            out[j] = v[j] / gate[j]
        if keep:
            for j in range(x.shape[1]):
                h = one / gate[j]
                slope[j] = h + (one - h) * (v[j] * h) * (root + twice * (v[j] * v[j]))


@leaf(_gelu_tanh_loop, FUSED)
@in_pieces
def bias_gelu_tanh(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Stands for `functional.gelu` with tanh.

    y = x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and x becomes y'.
    """
    root = math.sqrt(2.0 / math.pi)
    square, half = space
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


def _silu_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1.0)
    v, gate = np.empty_like(x[0]), np.empty_like(x[0])
    for i in range(x.shape[0]):
        slope, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = slope[j] + b[j]
            gate[j] = one + exp(-v[j])
        for j in range(x.shape[1]):
            out[j] = v[j] / gate[j]
        if keep:
            for j in range(x.shape[1]):
                s = one / gate[j]
                slope[j] = s + v[j] * s * (one - s)


@leaf(_silu_loop, FUSED)
@in_pieces
def bias_silu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Stands for `functional.silu`: y = x s, s = 1 / (1 + e^-x), and x becomes s + y (1 - s)."""
    s, _ = space
    s[...] = -UNIT
    _gate(x, s, y, keep)
    if keep:
        np.subtract(1.0, s, out=x)
        x *= y
        x += s


@in_pieces
def bias_tanh(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Stands for `functional.tanh`: y = tanh(x), and x becomes 1 - y^2."""
    np.tanh(x, out=y)
    if keep:
        np.multiply(y, y, out=x)
        np.subtract(1.0, x, out=x)


ACTIVATIONS: dict[str, Callable[..., None]] = {
    "relu": bias_relu,
    "gelu": bias_gelu,
    "gelu_tanh": bias_gelu_tanh,
    "silu": bias_silu,
    "tanh": bias_tanh,
}
"""By the names that ``EncoderConfig(activation=...)`` takes."""
