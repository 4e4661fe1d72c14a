"""Mixing tokens with a Fourier transform (Lee-Thorp et al., 2021, arXiv 2105.03824)."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, checks, fft_module


def fourier_mixing(x: Array) -> tuple[Array, Any]:
    """y = Re(F_seq x F_hidden): the 2-D discrete Fourier transform, real part, no parameters.

    Parameters
    ----------
    x : array, shape (..., length, d_model)

    Returns
    -------
    y : array, same shape
        Not normalised: y[0, 0] is the sum of x.
    cache : opaque
        For `fourier_mixing_backward`. Empty: the map is linear and has no parameters.

    Notes
    -----
    With C and S the cosine and sine matrices of each axis, y = C_seq x C_hid - S_seq x S_hid. The
    real part is taken once, after both transforms. All length x d_model entries of x are mixed:
    padding is a token like any other, which is why the mixer refuses it.
    """
    checks.floating(x=x)
    checks.shape("x", x, (None, "length", "d_model"))
    return fft_module(x).fft2(x, axes=(-2, -1)).real, ()


def fourier_mixing_backward(dy: Array, cache: Any) -> Array:
    """Gradient of `fourier_mixing`: the same transform, of dy.

    Parameters
    ----------
    dy : array, shape (..., length, d_model)
        Gradient of the loss with respect to y.
    cache : opaque
        From `fourier_mixing`.

    Returns
    -------
    dx : array, same shape

    Notes
    -----
    The gradient of a linear map is its transpose. C and S are symmetric, so the transpose of
    x -> C x C - S x S is the map itself.
    """
    dx, _ = fourier_mixing(dy)
    return dx
