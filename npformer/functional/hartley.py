"""Mixing tokens with a Hartley transform, which is real and invertible."""

from typing import Any

from npformer.core import Array, checks, fft_module


def hartley_mixing(x: Array) -> tuple[Array, Any]:
    """y = Re(F x) - Im(F x), where F is the 2-D discrete Fourier transform, unnormalised.

    Parameters
    ----------
    x : array, shape (..., length, d_model)
    """
    checks.floating(x=x)
    checks.shape("x", x, (None, "length", "d_model"))
    checks.filled("x", x, "An empty array has no transform")
    # With cosines C and sines S of each axis, as in `fourier_mixing`:
    # y = C x C - S x S + C x S + S x C. Each entry of y is a sum over x times cos t + sin t, where
    # t is the sum of the two axes' angles. Applied twice, the transform gives length * d_model * x,
    # so no information is lost. The real part alone keeps about half of the dimensions.
    transform = fft_module(x).fft2(x, axes=(-2, -1))
    return transform.real - transform.imag, x.shape  # the imaginary part is -(C x S + S x C)


def hartley_mixing_backward(dy: Array, cache: Any) -> Array:
    """dx = Re(F dy) - Im(F dy): the forward map, which is its own transpose.

    For y = C x S it is dx = C^T dy S^T, as in `fourier_mixing_backward`: each side keeps
    its own matrix.
    """
    # y = C x C - S x S + C x S + S x C, and C^T = C, S^T = S as in `fourier_mixing_backward`: each
    # term is its own transpose, and dx = C dy C - S dy S + C dy S + S dy C.
    checks.gradient(dy, cache)
    dx, _ = hartley_mixing(dy)  # so the way back is the way forward
    return dx
