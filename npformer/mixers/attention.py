"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any, Self

from npformer import checks, initializers, kernels
from npformer import functional as F
from npformer.backend import Array
from npformer.initializers import Seed
from npformer.layers.linear import Linear
from npformer.layers.pooling import without_padding
from npformer.mixers.averaging import AveragingMixer, Scores, over_heads
from npformer.mixers.mixer import MEMORIES, MixerSettings, check_heads
from npformer.module import Context, Gradients, Parameter

LONG = 2048
"""From this length on, ``memory="auto"`` takes queries in blocks where there is no kernel: about
where computing the weights twice costs no more time than moving them through memory (`python -m
benchmarks blockwise`). Kernels know better when."""


class AttentionScores(Scores):
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K, by head.

    The heads' projections lie side by side in one matrix each, so that all heads are one product.

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has d_model / n_heads features.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(
        self, d_model: int, n_heads: int = 1, *, seed: Seed, dtype: str = "float32"
    ) -> None:
        check_heads(d_model, n_heads)
        rng = initializers.generator(seed)
        self.n_heads = n_heads
        self.query = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.key = Linear(d_model, d_model, seed=rng, dtype=dtype)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(settings.d_model, settings.n_heads, seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        scores, scores_cache = F.attention_scores(
            F.split_heads(query, self.n_heads),  # [batch, heads, length, d_head]
            F.split_heads(key, self.n_heads),
        )
        return scores, (query_cache, key_cache, scores_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, scores_cache = cache
        dquery, dkey = F.attention_scores_backward(dy, scores_cache)
        # x is used twice: its gradients add up
        dx_key = self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        return dx_key + self.query.backward(F.merge_heads(dquery), query_cache, gradients)


class Attention(AveragingMixer):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has d_model / n_heads features.
    causal : bool
        Token i sees the tokens 0 to i only.
    memory : {"auto", "stored", "blocks"}
        "stored" keeps the weights, (batch, heads, length, length), for the backward pass.
        "blocks" takes some queries at a time and computes their weights again: the same numbers,
        more work, memory that grows with the length and not with its square. "auto" stores them
        for short sequences only.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    scores: AttentionScores
    in_parts = True

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        memory: str = "auto",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.choice("memory", memory, MEMORIES)
        rng = initializers.generator(seed)
        scores = AttentionScores(d_model, n_heads, seed=rng, dtype=dtype)
        super().__init__(scores, d_model, n_heads, causal=causal, seed=rng, dtype=dtype)
        self.memory = memory

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(
            settings.d_model,
            settings.n_heads,
            causal=settings.causal,
            memory=settings.memory,
            seed=seed,
            dtype=dtype,
        )

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        fused = kernels.fused("attention_heads", x, context)
        if fused is not None:
            maps = [parameter.value for parameter in self._projections()]
            store = {"auto": None, "stored": True, "blocks": False}[self.memory]
            heads, cache = fused(x, *maps, self.n_heads, self.causal, store, context)
            return heads, ("fused", cache)
        if self.memory == "stored" or (self.memory == "auto" and x.shape[1] < LONG):
            heads, cache = super().heads(x, context)
            return heads, ("stored", cache)
        query, query_cache = self.scores.query.forward(x, context)
        key, key_cache = self.scores.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        value = without_padding(value, context.mask)
        heads, heads_cache = F.blockwise_attention(
            F.split_heads(query, self.n_heads),
            F.split_heads(key, self.n_heads),
            F.split_heads(value, self.n_heads),
            mask=over_heads(context.mask),
            causal=self.causal,
        )
        return F.merge_heads(heads), ("blocks", (query_cache, key_cache, value_cache, heads_cache))

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        way, saved = cache
        if way == "fused":
            dx: Array
            dx, *dprojections = kernels.backward(dmerged, saved)
            for parameter, gradient in zip(self._projections(), dprojections, strict=True):
                gradients.add(parameter, gradient)
            return dx
        if way == "stored":
            return super().heads_backward(dmerged, saved, gradients)
        query_cache, key_cache, value_cache, heads_cache = saved
        dquery, dkey, dvalue = F.blockwise_attention_backward(
            F.split_heads(dmerged, self.n_heads), heads_cache
        )
        # x is used three times: its gradients add up
        dx = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx = dx + self.scores.key.backward(F.merge_heads(dkey), key_cache, gradients)
        return dx + self.scores.query.backward(F.merge_heads(dquery), query_cache, gradients)

    def _projections(self) -> list[Parameter]:
        """Return W and b of queries, keys and values."""
        found = []
        for linear in (self.scores.query, self.scores.key, self.value):
            assert linear.bias is not None
            found += [linear.weight, linear.bias]
        return found
