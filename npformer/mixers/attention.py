"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any, Self

from npformer import functional as F
from npformer.core import INITIALIZERS, Array, Context, Gradients, Seed, checks, initializers
from npformer.layers.linear import Linear
from npformer.layers.pooling import without_padding
from npformer.mixers.averaging import AveragingMixer, Scores, over_heads
from npformer.mixers.mixer import MixerSettings, check_heads

LONG = 2048
"""From this `max_len` on, ``EncoderConfig(memory="auto")`` builds `BlockwiseAttention`: about where
computing the weights twice costs no more time than moving them through memory (`python -m
benchmarks blockwise`)."""


class AttentionScores(Scores):
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K, by head.

    The heads' projections lie side by side in one matrix each, so that all heads are one product.

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has d_model / n_heads features.
    initializer : str
        A name in `INITIALIZERS`: what the projections are drawn from.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        rng, init = initializers.generator(seed), INITIALIZERS.make(initializer)
        self.n_heads = n_heads
        self.query = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        sizes = settings.d_model, settings.n_heads
        return cls(*sizes, initializer=settings.initializer, seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        by_head = [F.split_heads(part, self.n_heads) for part in (query, key)]
        scores, scores_cache = F.attention_scores(*by_head)  # of [batch, heads, length, d_head]
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
    memory : {"auto", "stored"}
        Whether the weights, (batch, heads, length, length), stay for the backward pass. They do
        here; what runs this layer in another way may compute those of long sequences again, unless
        it is told "stored". `BlockwiseAttention` never stores them.
    initializer : str
        A name in `INITIALIZERS`: what the projections are drawn from.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    scores: AttentionScores
    memories: tuple[str, ...] = ("auto", "stored")

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        memory: str = "auto",
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        if memory == "blocks" and memory not in self.memories:
            raise ValueError(
                "memory is 'blocks'; expected 'auto' or 'stored'. Attention in blocks is a class "
                "of its own, with the same parameters: BlockwiseAttention"
            )
        checks.choice("memory", memory, self.memories)
        rng = initializers.generator(seed)
        drawn: dict[str, Any] = {"initializer": initializer, "seed": rng, "dtype": dtype}
        scores = AttentionScores(d_model, n_heads, **drawn)
        super().__init__(scores, d_model, n_heads, causal=causal, **drawn)
        self.memory = memory

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Attention:
        in_blocks = settings.memory == "blocks"
        in_blocks |= settings.memory == "auto" and settings.max_len >= LONG
        kind = BlockwiseAttention if cls is Attention and in_blocks else cls
        return kind(
            settings.d_model,
            settings.n_heads,
            causal=settings.causal,
            memory=settings.memory,
            initializer=settings.initializer,
            seed=seed,
            dtype=dtype,
        )


class BlockwiseAttention(Attention):
    """`Attention` that takes some queries at a time, and computes their weights twice.

    The same numbers, more work, and memory that grows with the length and not with its square: see
    `functional.blockwise_attention`.

    Parameters
    ----------
    memory : {"blocks", "auto"}
        "auto" allows what runs this layer in another way to store the weights after all.
    d_model, n_heads, causal, initializer, seed, dtype
        As in `Attention`.
    """

    memories = ("blocks", "auto")

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        memory: str = "blocks",
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        super().__init__(
            d_model,
            n_heads,
            causal=causal,
            memory=memory,
            initializer=initializer,
            seed=seed,
            dtype=dtype,
        )

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.scores.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.scores.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        value = without_padding(value, context.mask)
        heads, heads_cache = F.blockwise_attention(
            F.split_heads(query, self.n_heads),  # [batch, heads, length, d_head]
            F.split_heads(key, self.n_heads),
            F.split_heads(value, self.n_heads),
            mask=over_heads(context.mask),
            causal=self.causal,
        )
        return F.merge_heads(heads), (query_cache, key_cache, value_cache, heads_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, value_cache, heads_cache = cache
        dquery, dkey, dvalue = F.blockwise_attention_backward(
            F.split_heads(dmerged, self.n_heads), heads_cache
        )
        # x is used three times: its gradients add up
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_key = self.scores.key.backward(F.merge_heads(dkey), key_cache, gradients)
        dx_query = self.scores.query.backward(F.merge_heads(dquery), query_cache, gradients)
        return dx_value + dx_key + dx_query
