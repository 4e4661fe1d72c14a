"""Wrong Fourier mixing."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients
from npformer.mixers import Fourier


class FourierThatIgnoresTheMask(Fourier):
    """Fourier mixing silently mixes padding into the other tokens.

    Who: Anyone who follows the published code, which takes no mask.
    Why: Each entry of the transform is a sum over all positions, including padding.
    Cost: The result of a sequence depends on the length that its batch is padded to.
    Caught: Changing the values at padding, or passing a padding mask, which must be refused. No
    gradient check, because the backward pass mixes padding too.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.mix(x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return self.mix_backward(dy, cache, gradients)


class FourierWithACorner(Fourier):
    """Short sequences are mixed with a corner of the matrix for a longer length.

    Who: Someone who computes the matrix of the transform once, for max_len.
    Why: Entry (j, k) of the matrix is exp(-2 pi i j k / n), where n is the length of the sequence.
    A corner of the matrix for another n is not a Fourier transform.
    Cost: The corner is nearly constant, so all tokens of a short sequence get nearly the same
    result.
    Caught: Comparing with a Fourier transform. No gradient check, because the backward pass uses
    the same matrix.
    """

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        length = x.shape[-2]
        whole = np.exp(-2j * np.pi * np.outer(np.arange(64), np.arange(64)) / 64)
        return (whole[:length, :length] @ np.fft.fft(x, axis=-1)).real, context

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, _ = self.mix(dy, cache)
        return dx
