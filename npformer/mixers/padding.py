"""Padding for mixers that see every position: refuse it, or go round it in a way that is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npformer import checks
from npformer.backend import Array, array_module, backend_of
from npformer.module import Lengths

Forward = Callable[[Array], tuple[Array, Any]]
Backward = Callable[[Array, Any], Array]


def mix_padded(
    mix: Forward,
    x: Array,
    mask: Array | None,
    padding: str,
    name: str,
    lengths: Lengths | None = None,
) -> tuple[Array, Any]:
    """Apply `mix` to sequences of which some end in padding.

    Parameters
    ----------
    mix : callable
        Forward pass of a pair on (batch, length, d_model) that sees every position.
    x : array, shape (batch, length, d_model)
    mask : bool array, shape (batch, length), or None
        True = keep.
    padding : {"refuse", "per_length", "zero"}
        "per_length": every sequence is mixed at its own length, and padding gives 0. "zero":
        padding is set to 0 and mixed with the rest.
    name : str
        What the user calls this mixer.
    lengths : Lengths, optional
        What the mask says of lengths, if that was asked before; "per_length" then does not wait
        for a mask on a GPU.

    Returns
    -------
    y : array, shape of x
    cache : opaque
        For `mix_padded_backward`.

    Raises
    ------
    ValueError
        There is a mask and `padding` is "refuse", or a sequence does not end in its padding.
    """
    if mask is None:
        y, cache = mix(x)
        return y, ("whole", cache)
    backend_of(x=x, mask=mask)
    checks.mask("mask", mask, tuple(x.shape[:2]))
    if padding == "refuse":
        raise ValueError(
            f"mixer {name!r} got a padding mask, and it mixes every position: it cannot skip "
            "padding. Two ways out: padding='per_length' mixes each sequence at its own length, "
            "padding='zero' mixes the padding as zeros; set one in EncoderConfig(padding=...). "
            "Or leave the mask out if no sequence is padded"
        )
    xp = array_module(x)
    if padding == "zero":
        y, cache = mix(xp.where(mask[..., None], x, 0.0))
        return y, ("zero", (cache, mask))

    y = xp.zeros_like(x)
    groups = []
    for length, rows in rows_of_length(mask, lengths):
        y[rows, :length], cache = mix(x[rows, :length])
        groups.append((length, rows, cache))
    return y, ("per_length", groups)


def mix_padded_backward(mix_backward: Backward, dy: Array, cache: Any) -> Array:
    """Gradient of `mix_padded`.

    Parameters
    ----------
    mix_backward : callable
        Backward pass of the pair.
    dy : array, shape (batch, length, d_model)
        Gradient of the loss with respect to y.
    cache : opaque
        From `mix_padded`.

    Returns
    -------
    dx : array, same shape
        0 at padding.
    """
    way, saved = cache
    if way == "whole":
        return mix_backward(dy, saved)
    xp = array_module(dy)
    if way == "zero":
        mix_cache, mask = saved
        return xp.where(mask[..., None], mix_backward(dy, mix_cache), 0.0)
    dx = xp.zeros_like(dy)
    for length, rows, mix_cache in reversed(saved):  # cuFFT still has the plans of the last ones
        dx[rows, :length] = mix_backward(dy[rows, :length], mix_cache)
    return dx


def rows_of_length(mask: Array, lengths: Lengths | None = None) -> list[tuple[int, Array]]:
    """Return (length, rows) for every length above 0 that occurs in a batch.

    Parameters
    ----------
    mask : bool array, shape (batch, length)
    lengths : Lengths, optional
        What the mask says, if that was asked before; otherwise this waits for a mask on a GPU.
    """
    return (lengths or Lengths(mask)).groups(mask)
