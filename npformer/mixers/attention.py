"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any, Self

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed, checks, generators, initializers
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.functional.heads import check_heads, mask_for_heads
from npformer.layers import Linear
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State, StateShapes
from npformer.mixers.attention_state import attend_to_state, shapes_of_keys_and_values
from npformer.mixers.mixer import Mixer, MixerSettings, mask_weights


class Attention(Mixer):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    W_Q, W_K and W_V hold the columns of all heads side by side, so one product serves all heads.
    `GeneralAttention` has what later papers added: groups, windows, rotations and others.

    Parameters
    ----------
    d_model, n_heads : int
        Each head averages d_model / n_heads features with its own weights.
    causal : bool
        Whether token i sees only the tokens 0 to i.
    initializer : str
        A name in `INITIALIZERS`: what the four matrices are drawn from.
    bias : bool
        Whether the four maps have a bias.

    Attributes
    ----------
    query, key, value, output : Linear
        W_Q, W_K, W_V and W_O.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        initializer: str = "xavier_uniform",
        bias: bool = True,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        rng = generators.from_seed(seed)
        init = initializers.INITIALIZERS.make(initializer)
        self.n_heads = n_heads
        self.query = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)
        self.causal = checks.flag("causal", causal)
        self.value = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)
        self.output = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        unknown = general_attention_settings(settings)
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} is set and {cls.__name__} derives from Attention, which "
                "has no such option; expected none, or a mixer that derives from GeneralAttention"
            )
        options = settings.only("d_model", "n_heads", "causal", "initializer", "bias")
        return cls(**options, seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        x = finite_at_padding(x, context.padding)
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        heads, heads_cache = F.scaled_dot_product_attention(
            query=F.split_heads(query, self.n_heads),  # [batch, heads, length, d_head]
            key=F.split_heads(key, self.n_heads),
            value=F.split_heads(value, self.n_heads),
            mask=mask_for_heads(context.mask),
            causal=self.causal,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        caches = query_cache, key_cache, value_cache, heads_cache, output_cache
        return y, (caches, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, padding = cache
        query_cache, key_cache, value_cache, heads_cache, output_cache = caches
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkey, dvalue = F.scaled_dot_product_attention_backward(dheads, heads_cache)
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_key = self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        dx_query = self.query.backward(F.merge_heads(dquery), query_cache, gradients)
        return dx_value + (dx_key + dx_query)  # x is used three times, so its gradient is a sum

    def explain(self, x: Array, context: Context) -> Array:
        query, _ = self.query.forward(x, context)
        key, _ = self.key.forward(x, context)
        scores, _ = F.attention_scores(
            query=F.split_heads(query, self.n_heads), key=F.split_heads(key, self.n_heads)
        )
        weights, _ = F.averaging_weights(scores, mask_for_heads(context.mask), self.causal)
        return mask_weights(weights, context.mask)

    # One token after another: see `attention_state` -------------------------------------------

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        d_head = self.value.weight.shape[1] // self.n_heads
        return shapes_of_keys_and_values(self.n_heads, length, d_head)

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        x = finite_at_padding(x, context.padding)
        query, _ = self.query.forward(x, context)
        key, _ = self.key.forward(x, context)
        value, _ = self.value.forward(x, context)
        heads, state = attend_to_state(
            query=F.split_heads(query, self.n_heads),
            key=F.split_heads(key, self.n_heads),
            value=F.split_heads(value, self.n_heads),
            state=state,
            context=context,
        )
        y, _ = self.output.forward(F.merge_heads(heads), context)
        return y, state


def general_attention_settings(settings: MixerSettings) -> list[str]:
    """Return the names of settings that are on and that only `GeneralAttention` supports."""
    off = {
        "attention_dropout": 0.0,
        "rope_theta": None,
        "n_kv_heads": None,
        "d_head": None,
        "window": None,
        "qk_norm": False,
    }
    return [name for name, value in off.items() if getattr(settings, name) != value]
