"""Bias and activation in place: each is called as ``activate(x, b, y, keep)`` and writes into y.

x, of shape (rows, width), holds products, to which the bias b is added. With `keep` it is then
overwritten with the derivative, which leaves one multiplication to the backward pass. y may be x,
for relu always, else without `keep`.

GELU in float32, its tanh form and SiLU are computed as x / (1 + e^-u) in passes, and the latter two
in loops as well. For a very negative x the exponential overflows, and x / infinity is 0, as it
should be.
"""

import math
from collections.abc import Callable
from functools import wraps

import numpy as np

from npformer.core import Array
from npformer.engine.cpu.loops import exp
from npformer.engine.cpu.normal import TAIL, bell, compute_in_float64, log_odds, tail
from npformer.engine.cpu.rows import EXP, FUSED, UNIT, chunks, leaf, scratch, zeros
from npformer.functional.normal import FAR, normal_density, normal_distribution

FEW = 2048
"""Up to this many numbers, SciPy's functions are faster than polynomials, which need more calls."""


def apply_in_chunks(activate: Callable[..., None]) -> Callable[..., None]:
    """Return passes that call ``activate(x, y, keep, space)`` for a chunk of rows at a time.

    `space`, of shape (2, rows, width), is scratch memory.
    """

    @wraps(activate)
    def passes(x: Array, b: Array, y: Array, keep: bool) -> None:
        with np.errstate(over="ignore"):  # x^12 and e^-u may overflow; x / infinity is 0
            for chunk in chunks(len(x), x.shape[1]):
                z = x[chunk]
                z += b
                activate(z, y[chunk], keep, scratch(2 * z.size, z.dtype).reshape(2, *z.shape))

    return passes


def _relu_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j] + b[j]
            x[i, j] = x.dtype.type(0.0) if v <= 0.0 else v  # NaN remains


@leaf(_relu_loop, FUSED)
@apply_in_chunks
def bias_relu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Replaces `functional.relu`: y = max(0, x). The derivative is y > 0."""
    np.maximum(x, zeros(x.shape[-1], x.dtype), out=y)


def _gelu_loop(x, b, y, keep):  # type: ignore[no-untyped-def]
    far, zero, one = x.dtype.type(FAR), x.dtype.type(0.0), x.dtype.type(1.0)
    scale = x.dtype.type(1.0 / math.sqrt(2.0 * math.pi))
    v, distance, height = np.empty_like(x[0]), np.empty_like(x[0]), np.empty_like(x[0])
    phi = np.empty_like(x[0])
    for i in range(x.shape[0]):
        slope, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = slope[j] + b[j]
            distance[j] = far if abs(v[j]) > far else abs(v[j])  # NaN remains
            height[j] = bell(distance[j])
        for j in range(x.shape[1]):
            beyond = tail(distance[j], height[j])
            phi[j] = one - beyond if v[j] > zero else beyond
        for j in range(x.shape[1]):
            out[j] = v[j] * phi[j]
        if keep:
            for j in range(x.shape[1]):
                slope[j] = phi[j] + v[j] * (scale * height[j])


@leaf(_gelu_loop, FUSED)
@apply_in_chunks
def bias_gelu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Replaces `functional.gelu`: y = x Phi(x), and x becomes Phi(x) + x Phi'(x)."""
    if x.dtype.char != "f":
        phi = normal_distribution(x)
        slope = phi + x * normal_density(x) if keep else phi
        np.multiply(x, phi, out=y)
    elif x.size <= FEW:
        y[...], slope = compute_in_float64(x)
    else:
        _many_gelu(x, y, keep, space)
        return
    if keep:
        x[...] = slope


def _many_gelu(x: Array, y: Array, keep: bool, space: Array) -> None:
    far = np.flatnonzero(x < TAIL)
    y_far, slope_far = compute_in_float64(x.take(far))
    square, phi = space
    np.multiply(x, x, out=square)
    log_odds(square, out=phi)
    _gate(x, phi, y, keep)
    np.put(y, far, y_far)
    if not keep:
        return
    # Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi), with the factor moved into the exponent
    square *= -0.5 * UNIT
    square -= 0.5 * math.log(2.0 * math.pi) * UNIT
    EXP(square, out=square)
    x *= square
    x += phi
    np.put(x, far, slope_far)


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
@apply_in_chunks
def bias_gelu_tanh(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Replaces `functional.gelu` with tanh.

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
@apply_in_chunks
def bias_silu(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Replaces `functional.silu`: y = x s, s = 1 / (1 + e^-x), and x becomes s + y (1 - s)."""
    s, _ = space
    s[...] = -UNIT
    _gate(x, s, y, keep)
    if keep:
        np.subtract(1.0, s, out=x)
        x *= y
        x += s


@apply_in_chunks
def bias_tanh(x: Array, y: Array, keep: bool, space: Array) -> None:
    """Replaces `functional.tanh`: y = tanh(x), and x becomes 1 - y^2."""
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
