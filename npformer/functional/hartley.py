"""Mixing tokens with a Hartley transform: real numbers in, real numbers out, nothing lost."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, checks, fft_module


def hartley_mixing(x: Array) -> tuple[Array, Any]:
    """y = Re(F x) - Im(F x), F the 2-D discrete Fourier transform over sequence and features.

    Parameters
    ----------
    x : array, shape (..., length, d_model)

    Returns
    -------
    y : array, same shape
        Not normalised.
    cache : opaque
        For `hartley_mixing_backward`. Empty: the map is linear and has no parameters.

    Notes
    -----
    Each entry of the transform is a sum over x of cas(t) = cos t + sin t, where t is the sum of
    both axes' angles. Applied twice it gives length * d_model * x, so no information is lost; the
    real part alone, `fourier_mixing`, keeps only about half of the dimensions.
    """
    checks.floating(x=x)
    checks.shape("x", x, (None, "length", "d_model"))
    transform = fft_module(x).fft2(x, axes=(-2, -1))
    return transform.real - transform.imag, ()


def hartley_mixing_backward(dy: Array, cache: Any) -> Array:
    """Gradient of `hartley_mixing`: the same transform, of dy.

    Parameters
    ----------
    dy : array, shape (..., length, d_model)
        Gradient of the loss with respect to y.
    cache : opaque
        From `hartley_mixing`.

    Returns
    -------
    dx : array, same shape

    Notes
    -----
    cas of the summed angles does not change when input and output indices swap places: the matrix
    of the map is symmetric, and its transpose is the map itself.
    """
    dx, _ = hartley_mixing(dy)
    return dx
