"""Inverted dropout: it scales in training and does nothing at evaluation."""

import math
from typing import Any

from npformer.core import Array, a_type, checks, is_array, is_numpy_generator, like

ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF
"""The largest number of 64 bits, so that one random number gives eight random bytes."""


def dropout(x: Array, rate: float, generator: Any = None) -> tuple[Array, Any]:
    """y = x m / (1 - rate), where each entry of m is 0 with probability `rate`, else 1.

    Parameters
    ----------
    x : array, any shape
    rate : float
        Probability, from 0 up to 1, that an entry is dropped.
    generator : numpy.random.Generator, or CuPy's
        Draws m. None means evaluation: y = x, whatever the rate. With a NumPy generator and a CuPy
        array, m is drawn on the host, so the same seed gives the same run on every backend. The
        generator of a part of a training step takes the first axis to be the samples.

    Notes
    -----
    The expectation of y is x, so evaluation needs no scaling. Srivastava et al. (2014) scale at
    evaluation instead.
    """
    checks.floating(x=x)
    checks.rate("rate", rate)
    if generator is None or rate == 0.0:
        return x, None  # evaluation, or nothing to drop
    rate = float(rate)  # a NumPy number would turn float32 into float64
    keep = draw_kept(x.shape, rate, generator)  # True with probability 1 - rate
    if is_array(keep):
        keep = like(keep, x)
    scaled = keep.astype(x.dtype) * (1.0 / (1.0 - rate))  # 0, or 1 / (1 - rate)
    return x * scaled, scaled


def dropout_backward(dy: Array, cache: Any) -> Array:
    """dx = dy m / (1 - rate).

    The derivative is that of the function that ran, with the m that it drew. In y_i = c_i x_i the
    factor c_i = m_i / (1 - rate) is a constant, so the gradient of x_i is c_i times that of y_i:
    what was dropped gets nothing back, what was kept gets more. At evaluation y = x.
    """
    if (scaled := cache) is None:
        return dy  # nothing was dropped: y was x
    if is_array(scaled):
        checks.gradient(dy, scaled.shape)
    # y = x * scaled
    return dy * scaled


def token_dropout(x: Array, rate: float, generator: Any = None) -> tuple[Array, Any]:
    """y_t = x_t m_t, where m_t is 0 for a whole token with probability `rate`, else 1.

    Parameters
    ----------
    x : array, shape (batch, length, d_model)
    rate, generator
        As in `dropout`.

    Notes
    -----
    This is the word dropout of deep averaging networks (Iyyer et al., 2015, section 4.1): a model
    that must do without some words relies on no single one. Nothing is scaled. A token that was
    dropped looks like an unknown word, whose embedding is small.

    A norm behind it sees a row of zeros, and multiplies the row's gradient by 1 / sqrt(eps), which
    is 1e6 for an eps of 1e-12. Where the row stays 0, the next norm does so again.
    """
    checks.sequences(x)
    checks.rate("rate", rate)
    if generator is None or rate == 0.0:
        return x, None  # evaluation, or nothing to drop
    keep = draw_kept(x.shape[:2], float(rate), generator)  # [batch, length]
    # [batch, length, 1]: all features of a token share its fate
    keep = (like(keep, x) if is_array(keep) else keep)[..., None].astype(x.dtype)
    return x * keep, (keep, x.shape)


def token_dropout_backward(dy: Array, cache: Any) -> Array:
    """dx_t = dy_t m_t: a token that was dropped gets nothing back."""
    if cache is None:
        return dy  # nothing was dropped: y was x
    keep, shape = cache
    checks.gradient(dy, shape)
    # y = x * keep
    return dy * keep


def draw_kept(shape: tuple[int, ...], rate: float, generator: Any) -> Array:
    """Return which entries are kept: each is dropped with probability `rate`.

    NumPy draws a random byte for each entry and compares it with a threshold, which takes a fifth
    of the time of uniform numbers. The threshold should be 256 rate, usually not a whole number. So
    each call rounds it up or down at random, so that the expected probability is exactly `rate`.
    """
    if not hasattr(generator, "random"):
        raise TypeError(
            f"generator is {a_type(generator)}; expected a numpy.random.Generator. "
            "Make one with numpy.random.default_rng(seed)"
        )
    if not is_numpy_generator(generator):
        is_kept: Array = generator.random(shape, dtype="float32") >= rate
        return is_kept
    if hasattr(generator, "mask_bytes"):
        uniform, drawn = generator.mask_bytes(shape)
    else:
        uniform = generator.random()
        rows, entries = (shape[0], math.prod(shape[1:])) if shape else (1, 1)
        words_in_row = -(-entries // 8)  # each row begins with a new word, as it does in a part
        words = generator.integers(0, ALL_BITS, rows * words_in_row, dtype="uint64", endpoint=True)
        drawn = words.view("uint8").reshape(rows, 8 * words_in_row)[:, :entries]
    low = int(256.0 * rate)
    threshold = low + int(uniform < 256.0 * rate - low)
    return (drawn >= threshold).reshape(shape)
