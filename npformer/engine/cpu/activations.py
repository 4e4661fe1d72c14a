"""Bias and activation: each is called as ``activate(x, b, y, dy)`` and writes f(x + b) into y.

x, of shape (rows, width), holds products, to which the bias b is added; it is left as it is, unless
y is the same array. `dy` is None, or the gradient of y, which is multiplied by f'(x + b): so a
backward pass needs nothing but x, and neither f nor its derivative is kept in memory.

GELU in float32, its tanh form and SiLU are computed as x / (1 + e^-u) in passes, and the latter two
in loops as well. For a very negative x the exponential overflows, and x / infinity is 0, as it
should be.
"""

import math
from collections.abc import Callable, Sequence
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
    """Return passes that call ``activate(z, y, dy, space)`` for a chunk of rows at a time.

    z is x + b, in scratch memory that may be overwritten; `space`, of shape (2, rows, width), is
    more of it.
    """

    @wraps(activate)
    def passes(x: Array, b: Array, y: Array, dy: Array | None) -> None:
        with np.errstate(over="ignore"):  # x^12 and e^-u may overflow; x / infinity is 0
            for chunk in chunks(len(x), x.shape[1]):
                rows = x[chunk]
                z, *space = scratch(3 * rows.size, rows.dtype).reshape(3, *rows.shape)
                np.add(rows, b, out=z)
                activate(z, y[chunk], None if dy is None else dy[chunk], space)

    return passes


def relu_loop(x, b, y, dy):  # type: ignore[no-untyped-def]
    """`bias_relu` as a loop."""
    zero = x.dtype.type(0.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j] + b[j]
            y[i, j] = zero if v <= zero else v  # NaN remains
            if dy is not None:
                dy[i, j] = dy[i, j] if v > zero else dy[i, j] * zero


@leaf(relu_loop, FUSED)
@apply_in_chunks
def bias_relu(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    """Replaces `functional.relu`: y = max(0, z). The derivative is z > 0."""
    np.maximum(z, zeros(z.shape[-1], z.dtype), out=y)
    if dy is not None:
        dy *= z > 0.0


def gelu_loop(x, b, y, dy):  # type: ignore[no-untyped-def]
    """`bias_gelu` as a loop."""
    far, zero, one = x.dtype.type(FAR), x.dtype.type(0.0), x.dtype.type(1.0)
    scale = x.dtype.type(1.0 / math.sqrt(2.0 * math.pi))
    v, distance, height = np.empty_like(x[0]), np.empty_like(x[0]), np.empty_like(x[0])
    phi = np.empty_like(x[0])
    for i in range(x.shape[0]):
        row, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = row[j] + b[j]
            distance[j] = far if abs(v[j]) > far else abs(v[j])  # NaN remains
            height[j] = bell(distance[j])
        for j in range(x.shape[1]):
            beyond = tail(distance[j], height[j])
            phi[j] = one - beyond if v[j] > zero else beyond
        for j in range(x.shape[1]):
            out[j] = v[j] * phi[j]
        if dy is not None:
            gradient = dy[i]
            for j in range(x.shape[1]):
                gradient[j] *= phi[j] + v[j] * (scale * height[j])


@leaf(gelu_loop, FUSED)
@apply_in_chunks
def bias_gelu(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    """Replaces `functional.gelu`: y = z Phi(z). The derivative is Phi(z) + z Phi'(z)."""
    if z.dtype.char == "f" and z.size > FEW:
        _many_gelu(z, y, dy, space)
        return
    if z.dtype.char == "f":
        y[...], slope = compute_in_float64(z)
    else:
        phi = normal_distribution(z)
        slope = phi if dy is None else phi + z * normal_density(z)
        np.multiply(z, phi, out=y)
    if dy is not None:
        dy *= slope


def _many_gelu(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    far = np.flatnonzero(z < TAIL)
    y_far, slope_far = compute_in_float64(z.take(far))
    square, phi = space
    np.multiply(z, z, out=square)
    log_odds(square, out=phi)
    _gate(z, phi, y, dy is not None)
    np.put(y, far, y_far)
    if dy is None:
        return
    # Phi'(z) = exp(-z^2 / 2) / sqrt(2 pi), with the factor moved into the exponent
    square *= -0.5 * UNIT
    square -= 0.5 * math.log(2.0 * math.pi) * UNIT
    EXP(square, out=square)
    z *= square
    z += phi
    np.put(z, far, slope_far)
    dy *= z


def _gate(z: Array, slope: Array, y: Array, differentiates: bool) -> None:
    """y = z / (1 + EXP(z slope)); then, if asked, `slope` becomes the gate 1 / (1 + EXP(..))."""
    slope *= z
    EXP(slope, out=slope)
    slope += 1.0
    np.divide(z, slope, out=y)
    if differentiates:
        np.divide(1.0, slope, out=slope)


def gelu_tanh_loop(x, b, y, dy):  # type: ignore[no-untyped-def]
    """`bias_gelu_tanh` as a loop."""
    one = x.dtype.type(1.0)
    root = x.dtype.type(2.0 * math.sqrt(2.0 / math.pi))
    cube = x.dtype.type(2.0 * 0.044715 * math.sqrt(2.0 / math.pi))
    twice = x.dtype.type(3.0 * 2.0 * 0.044715 * math.sqrt(2.0 / math.pi))
    v, gate = np.empty_like(x[0]), np.empty_like(x[0])
    for i in range(x.shape[0]):
        row, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = row[j] + b[j]
            gate[j] = one + exp(-v[j] * (root + cube * (v[j] * v[j])))
        for j in range(x.shape[1]):
            out[j] = v[j] / gate[j]
        if dy is not None:
            gradient = dy[i]
            for j in range(x.shape[1]):
                h = one / gate[j]
                slope = h + (one - h) * (v[j] * h) * (root + twice * (v[j] * v[j]))
                gradient[j] *= slope


@leaf(gelu_tanh_loop, FUSED)
@apply_in_chunks
def bias_gelu_tanh(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    """Replaces `functional.gelu` with tanh.

    y = z (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (z + 0.044715 z^3).
    """
    root = math.sqrt(2.0 / math.pi)
    square, half = space
    np.multiply(z, z, out=square)
    np.multiply(square, -2.0 * 0.044715 * root * UNIT, out=half)
    half -= 2.0 * root * UNIT
    _gate(z, half, y, dy is not None)  # h = (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u))
    if dy is None:
        return
    # y' = h + z h', and h' = 2 h (1 - h) u'
    square *= 2.0 * 3.0 * 0.044715 * root
    square += 2.0 * root
    np.subtract(1.0, half, out=z)
    z *= y  # before the square, which may overflow: (1 - h) y is near 0 for large |z|
    z *= square
    z += half
    dy *= z


def silu_loop(x, b, y, dy):  # type: ignore[no-untyped-def]
    """`bias_silu` as a loop."""
    one = x.dtype.type(1.0)
    v, gate = np.empty_like(x[0]), np.empty_like(x[0])
    for i in range(x.shape[0]):
        row, out = x[i], y[i]
        for j in range(x.shape[1]):
            v[j] = row[j] + b[j]
            gate[j] = one + exp(-v[j])
        for j in range(x.shape[1]):
            out[j] = v[j] / gate[j]
        if dy is not None:
            gradient = dy[i]
            for j in range(x.shape[1]):
                s = one / gate[j]
                gradient[j] *= s + v[j] * s * (one - s)


@leaf(silu_loop, FUSED)
@apply_in_chunks
def bias_silu(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    """Replaces `functional.silu`: y = z s, s = 1 / (1 + e^-z). The derivative: s + y (1 - s)."""
    s, _ = space
    s[...] = -UNIT
    _gate(z, s, y, dy is not None)
    if dy is not None:
        np.subtract(1.0, s, out=z)
        z *= y
        z += s
        dy *= z


@apply_in_chunks
def bias_tanh(z: Array, y: Array, dy: Array | None, space: Sequence[Array]) -> None:
    """Replaces `functional.tanh`: y = tanh(z). The derivative is 1 - y^2."""
    np.tanh(z, out=y)
    if dy is not None:
        np.multiply(y, y, out=z)
        np.subtract(1.0, z, out=z)
        dy *= z


ACTIVATIONS: dict[str, Callable[..., None]] = {
    "relu": bias_relu,
    "gelu": bias_gelu,
    "gelu_tanh": bias_gelu_tanh,
    "silu": bias_silu,
    "tanh": bias_tanh,
}
"""By the names that ``EncoderConfig(activation=...)`` takes."""
