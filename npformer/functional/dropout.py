"""Dropout, inverted: scaled while training, nothing at evaluation."""

from __future__ import annotations

import math
from typing import Any

from npformer.core import Array, checks, draws_on_host, is_array, like

ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF
"""The largest number of 64 bits: eight random bytes at once."""


def dropout(x: Array, rate: float, generator: Any = None) -> tuple[Array, Any]:
    """y = x m / (1 - rate), where each entry of m is 0 with probability `rate`, else 1.

    Parameters
    ----------
    x : array, any shape
    rate : float
        Probability, from 0 up to 1, that an entry is dropped. 0 does nothing.
    generator : numpy.random.Generator, or CuPy's
        Draws m. None means evaluation: y = x, whatever the rate. A NumPy generator beside a CuPy
        array draws on the host, so that a seed means the same run on every backend.

    Returns
    -------
    y : array, same shape
        Its expectation is x, so nothing is rescaled at evaluation.
    cache : opaque
        For `dropout_backward`. The mask lives here, not in a layer: one dropout may be applied
        twice.

    Notes
    -----
    Srivastava et al. (2014) scale at evaluation instead; the two differ by a constant factor.
    """
    check_dropout(x, rate, generator)
    if generator is None or rate == 0.0:
        return x, None
    rate = float(rate)  # a NumPy number would make float64 of float32
    keep = draw_kept(x.shape, rate, generator)
    if is_array(keep):
        keep = like(keep, x)
    scaled = keep.astype(x.dtype) * (1.0 / (1.0 - rate))
    return x * scaled, scaled


def dropout_backward(dy: Array, cache: Any) -> Array:
    """Gradient of `dropout`: the same mask and scale, of dy.

    Parameters
    ----------
    dy : array
        Gradient of the loss with respect to y.
    cache : opaque
        From `dropout`.

    Returns
    -------
    dx : array, same shape
    """
    scaled = cache
    # y = x * scaled
    return dy if scaled is None else dy * scaled


def draw_kept(shape: tuple[int, ...], rate: float, generator: Any) -> Array:
    """Return which entries stay: each is dropped with probability `rate`.

    Parameters
    ----------
    shape : tuple of int
    rate : float
    generator : numpy.random.Generator, or CuPy's

    Returns
    -------
    kept : bool array
        Where the generator draws.

    Notes
    -----
    NumPy draws a random byte for each entry and compares it with a threshold, in a fifth of the
    time that uniform numbers take. 256 rate is hardly ever a whole number, so the threshold of a
    call is drawn from the two next to it, in such shares that the probability is `rate` exactly.
    """
    if not draws_on_host(generator):
        kept: Array = generator.random(shape, dtype="float32") >= rate
        return kept
    n = math.prod(shape)
    words = generator.integers(0, ALL_BITS, -(-n // 8), dtype="uint64", endpoint=True)
    low = int(256.0 * rate)
    threshold = low + int(float(generator.random()) < 256.0 * rate - low)
    return (words.view("uint8")[:n] >= threshold).reshape(shape)


def check_dropout(x: Array, rate: float, generator: Any) -> None:
    """Check dropout's arguments."""
    checks.floating(x=x)
    checks.rate("rate", rate)
    if generator is not None and rate != 0.0 and not hasattr(generator, "random"):
        raise TypeError(
            f"generator is a {type(generator).__name__}; expected a numpy.random.Generator. "
            "Make one with numpy.random.default_rng(seed)"
        )
