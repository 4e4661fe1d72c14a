"""Dropout's mask from random bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.dropout import check_dropout
from npformer.kernels.cpu.rows import PIECE
from npformer.module import Context


def draw_kept(shape: tuple[int, ...], rate: float, generator: Any) -> Array:
    """Return which entries stay: each is dropped with probability `rate`.

    Parameters
    ----------
    shape : tuple of int
    rate : float
    generator : numpy.random.Generator

    Returns
    -------
    kept : bool array

    Notes
    -----
    One random byte an entry, compared with a threshold: a fifth of the time of uniform numbers. 256
    rate is no whole number, so the threshold of each piece is drawn from the two next to it, such
    that the probability is `rate` exactly.
    """
    n = int(np.prod(shape))
    kept = np.empty(n, dtype=bool)
    low = int(256.0 * rate)
    for start in range(0, n, PIECE):
        piece = kept[start : start + PIECE]
        words = generator.integers(0, 2**64 - 1, -(-piece.size // 8), dtype=np.uint64, endpoint=True)
        threshold = low + (generator.random() < 256.0 * rate - low)
        np.greater_equal(words.view(np.uint8)[: piece.size], threshold, out=piece)
    return kept.reshape(shape)


def dropout(x: Array, rate: float, generator: Any = None, *, context: Context) -> tuple[Array, Any]:
    """`functional.dropout`.

    Parameters
    ----------
    x, rate, generator
        As there.
    context : Context
        Lends the memory.
    """
    check_dropout(x, rate, generator)
    if generator is None or rate == 0.0:
        return x, None
    kept = draw_kept(x.shape, rate, generator)
    scale = 1.0 / (1.0 - float(rate))
    return _scaled(x, kept, scale, context), (kept, scale, context)


def dropout_backward(dy: Array, cache: Any) -> Array:
    """`functional.dropout_backward`."""
    return dy if cache is None else _scaled(dy, *cache)


def _scaled(x: Array, kept: Array, scale: float, context: Context) -> Array:
    y = np.multiply(x, kept, out=context.empty(x.shape, x))
    y *= scale
    return y
