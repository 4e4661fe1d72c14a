"""Padding for mixers that see every position: refuse it, mix it as zeros, or mix without it.

Each strategy is a pair of functions. `mix` and `mix_backward` are the two passes of a
mixer over whole sequences, and `name` is what the user calls that mixer.
"""

from collections.abc import Callable
from typing import Any

from npformer.core import Array, Padding, array_module
from npformer.core.padding import check_padding
from npformer.layers.pooling import finite_at_padding, without_padding

Mix = Callable[[Array], tuple[Array, Any]]
MixBackward = Callable[[Array, Any], Array]


def refuse(mix: Mix, x: Array, padding: Padding | None, name: str) -> tuple[Array, Any]:
    """Mix sequences that have no padding; a mask is an error."""
    if padding is not None:
        check_padding(padding.mask, x)
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
    y, mix_cache = mix(without_padding(x, None if padding is None else padding.mask))
    return y, (mix_cache, padding)


def zero_backward(mix_backward: MixBackward, dy: Array, cache: Any) -> Array:
    """Gradient of `zero`: 0 at padding."""
    mix_cache, padding = cache
    dx = mix_backward(finite_at_padding(dy, padding), mix_cache)
    return without_padding(dx, None if padding is None else padding.mask)


def per_length(mix: Mix, x: Array, padding: Padding | None, name: str) -> tuple[Array, Any]:
    """Mix each sequence at its own length, with its padding at the end; there y is 0."""
    if padding is None:
        y, mix_cache = mix(x)
        return y, [(x.shape[1], slice(None), mix_cache)]
    check_padding(padding.mask, x)
    y = array_module(x).zeros_like(x)
    groups = []
    for length, rows in padding.rows_of_length():
        y[rows, :length], mix_cache = mix(x[rows, :length])
        groups.append((length, rows, mix_cache))
    return y, groups


def per_length_backward(mix_backward: MixBackward, dy: Array, cache: Any) -> Array:
    """Gradient of `per_length`: 0 at padding."""
    dx = array_module(dy).zeros_like(dy)
    for length, rows, mix_cache in reversed(
        cache
    ):  # cuFFT still caches the plans of the last lengths
        dx[rows, :length] = mix_backward(dy[rows, :length], mix_cache)
    return dx


STRATEGIES: dict[str, tuple[Callable[..., tuple[Array, Any]], Callable[..., Array]]] = {
    "refuse": (refuse, refuse_backward),
    "per_length": (per_length, per_length_backward),
    "zero": (zero, zero_backward),
}
"""What ``EncoderConfig(padding=...)`` takes."""
