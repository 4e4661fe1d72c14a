"""Mixing tokens with a Fourier transform (Lee-Thorp et al., 2021, arXiv 2105.03824)."""

from typing import Any

from npformer.core import Array, checks, fft_module


def fourier_mixing(x: Array) -> tuple[Array, Any]:
    """y = Re(F_seq x F_hidden): the real part of the 2-D discrete Fourier transform, unnormalised.

    Parameters
    ----------
    x : array, shape (..., length, d_model)
        All tokens are mixed, padding too. That is why the mixer refuses padding.
    """
    checks.floating(x=x)
    checks.shape("x", x, (None, "length", "d_model"))
    checks.filled("x", x, "An empty array has no transform")
    # F = C - iS for each of the two axes, with its matrices of cosines C and of sines S:
    # (C - iS) x (C - iS) = C x C - iC x S - iS x C + i^2 S x S
    #                     = (C x C - S x S) - i (C x S + S x C), and y = C x C - S x S.
    # The real part is taken once, after both transforms.
    return fft_module(x).fft2(x, axes=(-2, -1)).real, x.shape


def fourier_mixing_backward(dy: Array, cache: Any) -> Array:
    """dx = Re(F_seq dy F_hidden): the forward map, which is its own transpose.

    In y = C x C, x_uj is in every y_tk, times C_tu C_jk: dx_uj = sum_tk C_tu dy_tk C_jk, or
    dx = C^T dy C^T. The same holds for S x S.
    """
    # y = C x C - S x S, so dx = C^T dy C^T - S^T dy S^T. The entries of C, cos(2 pi j k / n), stay
    # the same when j and k are swapped: C^T = C and, likewise, S^T = S.
    checks.gradient(dy, cache)
    dx, _ = fourier_mixing(dy)  # so the way back is the way forward
    return dx
