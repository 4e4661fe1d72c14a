"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any, Self

from npformer import functional as F
from npformer import initializers
from npformer.backend import Array
from npformer.initializers import Seed
from npformer.layers.linear import Linear
from npformer.mixers.mixer import Mixer, MixerSettings, check_heads
from npformer.module import Context, Gradients


class Attention(Mixer):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    The heads' projections lie side by side in one matrix each, so that all heads are one product.

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has d_model / n_heads features.
    causal : bool
        Token i sees the tokens 0 to i only.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        rng = initializers.generator(seed)
        self.n_heads = n_heads
        self.causal = causal
        self.query = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.key = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.value = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(
            settings.d_model, settings.n_heads, causal=settings.causal, seed=seed, dtype=dtype
        )

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        heads, heads_cache = F.scaled_dot_product_attention(
            F.split_heads(query, self.n_heads),  # [batch, heads, length, d_head]
            F.split_heads(key, self.n_heads),
            F.split_heads(value, self.n_heads),
            mask=over_heads(context.mask),
            causal=self.causal,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        return y, (query_cache, key_cache, value_cache, heads_cache, output_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, value_cache, heads_cache, output_cache = cache
        dmerged = self.output.backward(dy, output_cache, gradients)
        dquery, dkey, dvalue = F.scaled_dot_product_attention_backward(
            F.split_heads(dmerged, self.n_heads), heads_cache
        )
        # x is used three times: its gradients add up
        dx = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx = dx + self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        return dx + self.query.backward(F.merge_heads(dquery), query_cache, gradients)


def over_heads(mask: Array | None) -> Array | None:
    """(batch, key_length) -> (batch, 1, 1, key_length): for all heads and all queries."""
    return None if mask is None else mask[:, None, None, :]
