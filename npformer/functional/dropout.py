"""Dropout, inverted: scaled while training, nothing at evaluation."""

from __future__ import annotations

from typing import Any

from npformer import checks
from npformer.backend import Array, is_array, like


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
    uniform = generator.random(x.shape, dtype="float32")
    keep = like(uniform >= rate, x) if is_array(uniform) else uniform >= rate
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


def check_dropout(x: Array, rate: float, generator: Any) -> None:
    """Check dropout's arguments."""
    checks.floating(x=x)
    checks.rate("rate", rate)
    if generator is not None and rate != 0.0 and not hasattr(generator, "random"):
        raise TypeError(
            f"generator is a {type(generator).__name__}; expected a numpy.random.Generator. "
            "Make one with numpy.random.default_rng(seed)"
        )
