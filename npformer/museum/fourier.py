"""Wrong Fourier mixing: its padding, and its length."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients
from npformer.mixers import Fourier


class FourierThatIgnoresTheMask(Fourier):
    """Fourier mixing mixes padding in and says nothing.

    Parameters
    ----------
    padding
        As in `Fourier`, and of no effect.

    Notes
    -----
    Who: Whoever follows the published code, which takes no mask.

    Why: Each entry of the transform is a sum over all positions, padding too: the same sentence
    gives another result in a longer batch.

    Cost: Results that depend on the neighbours in a batch.

    Caught: By no gradient check, but by a mask that is not refused:
    `padding_is_never_mixed_in_silence`; and by what padding holds: `padding_changes_no_kept_token`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.mix(x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return self.mix_backward(dy, cache, gradients)


class FourierWithACorner(Fourier):
    """Short sequences are mixed with a corner of the long transform's matrix.

    Parameters
    ----------
    padding
        As in `Fourier`.

    Notes
    -----
    Who: Someone who computes the matrix once, for max_len, to have products only.

    Why: Entry (j, k) is exp(-2 pi i j k / n). n is the length of the sequence, so a corner of the
    matrix for another n is another map, and not a Fourier transform.

    Cost: Short sequences are hardly mixed at all: the corner is nearly constant.

    Caught: By no gradient check, for this map is its own gradient too, but by the transform itself:
    `fourier_mixing_is_the_transform_of_its_own_length`.
    """

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        length = x.shape[-2]
        whole = np.exp(-2j * np.pi * np.outer(np.arange(64), np.arange(64)) / 64)
        return (whole[:length, :length] @ np.fft.fft(x, axis=-1)).real, context

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, _ = self.mix(dy, cache)
        return dx
