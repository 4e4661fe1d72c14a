"""No mixing: every token stays by itself."""

from typing import Any, Self

from npformer.core import Array, Context, Gradients, Seed, array_module, checks
from npformer.core.padding import check_padding
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State, StateShapes
from npformer.mixers.mixer import Mixer, MixerSettings, mask_weights


class Identity(Mixer):
    """y = x: the baseline "FF-only" of the FNet paper, where only pooling mixes tokens."""

    dropout_follows = False

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.sequences(x)
        if context.mask is not None:
            check_padding(context.mask, x)
        return finite_at_padding(x, context.padding), context.padding

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return finite_at_padding(dy, cache)

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        return {}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        return finite_at_padding(x, context.padding), state.extend(x.shape[1], context)

    def explain(self, x: Array, context: Context) -> Array:
        xp = array_module(x)
        batch, length = x.shape[:2]
        identity = xp.eye(length, dtype=x.dtype)
        weights = xp.broadcast_to(identity, (batch, 1, length, length))
        return mask_weights(weights, context.mask)
