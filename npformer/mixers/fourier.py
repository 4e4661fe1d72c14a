"""Fourier mixing as a mixer (Lee-Thorp et al., 2021, arXiv 2105.03824)."""

from __future__ import annotations

from typing import Any, Self

from npformer import checks
from npformer import functional as F
from npformer.backend import Array
from npformer.initializers import Seed
from npformer.mixers.mixer import PADDINGS, Mixer, MixerSettings
from npformer.mixers.padding import mix_padded, mix_padded_backward
from npformer.module import Context, Gradients


class Fourier(Mixer):
    """y = Re(F_seq F_hidden x); no parameters.

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        The transform sees every position. "refuse": a padding mask is an error. "per_length": each
        sequence is transformed at its own length, so padding changes nothing. "zero": padding is
        set to 0 and transformed with the rest; close to the published code, which ignores padding,
        and the result then depends on how much of it there is.

    Notes
    -----
    The paper has no dropout between the mixing and the residual connection.
    """

    dropout_follows = False

    def __init__(self, padding: str = "refuse") -> None:
        checks.choice("padding", padding, PADDINGS)
        self.padding = padding

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        if settings.causal:
            raise ValueError(
                "causal=True with mixer 'fourier'; expected False, for the transform of a "
                "sequence sees all of it at once. Use 'attention' or 'dense_synthesizer'"
            )
        return cls(settings.padding)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return mix_padded(F.fourier_mixing, x, context.mask, self.padding, "fourier")

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return mix_padded_backward(F.fourier_mixing_backward, dy, cache)
