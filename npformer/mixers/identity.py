"""No mixing: every token stays by itself."""

from __future__ import annotations

from typing import Any, Self

from npformer.core import Array, Context, Gradients, Seed, array_module
from npformer.mixers.mixer import Mixer, MixerSettings


class Identity(Mixer):
    """y = x: the "FF-only" encoder that FNet's authors compare with, and a baseline for any other.

    Without mixing, only the pooling brings tokens together.
    """

    dropout_follows = False

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls()

    def explain(self, x: Array, context: Context) -> Array:
        xp = array_module(x)
        batch, length = x.shape[:2]
        kept = xp.ones((batch, length), dtype=bool) if context.mask is None else context.mask
        return xp.eye(length, dtype=x.dtype) * kept[:, None, None, :]

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return x, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return dy
