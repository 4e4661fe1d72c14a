"""Padding for mixers that see every position: refuse it, or go round it in a way that is named.

Each way is a pair: ``way(mix, x, padding, name) -> (y, cache)`` and ``way_backward(mix_backward,
dy, cache) -> dx``, where `mix` and `mix_backward` mix whole sequences, and `name` is what the user
calls the mixer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npformer.core import Array, Padding, array_module, backend_of, checks

Mix = Callable[[Array], tuple[Array, Any]]
MixBackward = Callable[[Array, Any], Array]


def refuse(mix: Mix, x: Array, padding: Padding | None, name: str) -> tuple[Array, Any]:
    """Mix sequences that have no padding.

    Raises
    ------
    ValueError
        There is a mask.
    """
    if padding is not None:
        _check(x, padding)
        raise ValueError(
            f"mixer {name!r} got a padding mask, and it mixes every position: it cannot skip "
            "padding. Two ways out: padding='per_length' mixes each sequence at its own length, "
            "padding='zero' mixes the padding as zeros; set one in EncoderConfig(padding=...). "
            "Or leave the mask out if no sequence is padded"
        )
    return mix(x)


def refuse_backward(mix_backward: MixBackward, dy: Array, cache: Any) -> Array:
    """Gradient of `refuse`."""
    return mix_backward(dy, cache)


def zero(mix: Mix, x: Array, padding: Padding | None, name: str) -> tuple[Array, Any]:
    """Set padding to 0 and mix it with the rest."""
    mask = None if padding is None else _check(x, padding)
    y, cache = mix(_with_zeros(x, mask))
    return y, (cache, mask)


def zero_backward(mix_backward: MixBackward, dy: Array, cache: Any) -> Array:
    """Gradient of `zero`: 0 at padding."""
    mix_cache, mask = cache
    return _with_zeros(mix_backward(dy, mix_cache), mask)


def per_length(mix: Mix, x: Array, padding: Padding | None, name: str) -> tuple[Array, Any]:
    """Mix every sequence at its own length; padding gives 0.

    Raises
    ------
    ValueError
        A sequence does not end in its padding.
    """
    if padding is None:
        y, cache = mix(x)
        return y, [(x.shape[1], slice(None), cache)]
    _check(x, padding)
    y = array_module(x).zeros_like(x)
    groups = []
    for length, rows in padding.rows_of_length():
        y[rows, :length], cache = mix(x[rows, :length])
        groups.append((length, rows, cache))
    return y, groups


def per_length_backward(mix_backward: MixBackward, dy: Array, cache: Any) -> Array:
    """Gradient of `per_length`: 0 at padding."""
    groups = cache
    dx = array_module(dy).zeros_like(dy)
    for length, rows, mix_cache in reversed(groups):  # cuFFT still has the plans of the last ones
        dx[rows, :length] = mix_backward(dy[rows, :length], mix_cache)
    return dx


WAYS_ROUND_PADDING: dict[str, tuple[Callable[..., tuple[Array, Any]], Callable[..., Array]]] = {
    "refuse": (refuse, refuse_backward),
    "per_length": (per_length, per_length_backward),
    "zero": (zero, zero_backward),
}
"""By what ``EncoderConfig(padding=...)`` takes."""


def _check(x: Array, padding: Padding) -> Array:
    """Return the mask after a check that it fits x, (batch, length, d_model)."""
    backend_of(x=x, mask=padding.mask)
    checks.mask("mask", padding.mask, tuple(x.shape[:2]))
    return padding.mask


def _with_zeros(x: Array, mask: Array | None) -> Array:
    return x if mask is None else array_module(x).where(mask[..., None], x, 0.0)
