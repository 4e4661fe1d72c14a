"""Rotary positional encoding: pairs of features turn by an angle that grows with the position."""

import math
from typing import Any

from npformer.core import Array, array_module, asarray, backend_of, checks

LAYOUTS = ("halves", "neighbours")


def rotary(
    x: Array, positions: Array, theta: float = 10000.0, layout: str = "halves"
) -> tuple[Array, Any]:
    """Turn pair i of the features at position p by the angle t = p theta^(-2 i / d_head).

    (a, b) becomes (a cos t - b sin t, a sin t + b cos t) (Su et al., 2021, arXiv 2104.09864). For
    queries and keys: the product of a query at p and a key at q is then that of the two as they
    were, with one of them turned by p - q steps. It depends on how far apart they stand, and not on
    where.

    Parameters
    ----------
    x : array, shape (..., length, d_head)
        d_head is even.
    positions : int array
        Whole numbers from 0, of a shape that broadcasts with (..., length).
    theta : float
        Above 1: the slowest pair needs 2 pi theta^(1 - 2 / d_head) positions for a turn.
    layout : {"halves", "neighbours"}
        Which features are a pair: (i, i + d_head / 2), as in Llama's and ModernBERT's files, or
        (2 i, 2 i + 1), as in the paper. The same model has other rows in its weights.
    """
    checks.floating(x=x)
    checks.choice("layout", layout, LAYOUTS)
    checks.number("theta", theta, above=0.0)
    if x.ndim < 2 or x.shape[-1] % 2:
        checks.shape("x", x, (None, "length", "d_head"))
        raise ValueError(
            f"x has shape {tuple(x.shape)}; expected an even number of features, because they are "
            "turned in pairs"
        )
    _check_positions(positions, x)
    at = asarray(positions, backend_of(x=x).name)  # the place of each token in its sequence
    dtype = "float32" if x.dtype.name == "float32" else "float64"
    cosine, sine = rotations(at, x.shape[-1], theta, dtype)  # one angle for each place and pair
    # (a, b) becomes (a cos t - b sin t, a sin t + b cos t): lengths stay as they are.
    return _turn(x, cosine, sine, layout), (cosine, sine, layout, x.shape)


def rotary_backward(dy: Array, cache: Any) -> Array:
    """Turn the gradient back, by the angle -t: the inverse of a rotation is its transpose."""
    cosine, sine, layout, shape = cache
    checks.gradient(dy, shape)
    return _turn(dy, cosine, -sine, layout)  # sin(-t) = -sin t


def rotations(positions: Array, d_head: int, theta: float, dtype: str) -> tuple[Array, Array]:
    """Return cosines and sines of the angles, (..., length, d_head / 2).

    Angles are computed in float64: in float32 they would lose digits at large positions.
    """
    xp = array_module(positions)
    rates = xp.exp(xp.arange(0, d_head, 2) * (-math.log(theta) / d_head))  # theta^(-2 i / d_head)
    angles = positions[..., None] * rates
    return xp.cos(angles).astype(dtype), xp.sin(angles).astype(dtype)


def _check_positions(positions: Array, x: Array) -> None:
    """Check that there is a whole number for each row of x."""
    backend_of(positions=positions)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"positions has dtype {positions.dtype}; expected whole numbers")
    shape, expected = positions.shape, x.shape[:-1]
    fits = 1 <= len(shape) <= len(expected) and all(
        n in (1, of_x) for n, of_x in zip(shape[::-1], expected[::-1], strict=False)
    )
    if not fits:
        raise ValueError(
            f"positions has shape {shape}; expected ({expected[-1]},), one for each token of x, "
            f"or a shape that broadcasts with {tuple(expected)}"
        )


def _turn(x: Array, cosine: Array, sine: Array, layout: str) -> Array:
    xp, half = array_module(x), x.shape[-1] // 2
    halves = layout == "halves"
    a, b = (x[..., :half], x[..., half:]) if halves else (x[..., 0::2], x[..., 1::2])
    turned = a * cosine - b * sine, a * sine + b * cosine  # [..., length, d_head / 2]
    if halves:
        return xp.concatenate(turned, axis=-1)
    return xp.stack(turned, axis=-1).reshape(x.shape)
