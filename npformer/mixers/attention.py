"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Seed, checks, initializers
from npformer.core.state import State, StateShapes, places
from npformer.functional.heads import over_heads
from npformer.layers import Linear, RMSNorm
from npformer.mixers.averaging import AveragingMixer, Scores
from npformer.mixers.mixer import TODAY, MixerSettings

LONG = 2048
"""From this `max_len` on, ``EncoderConfig(memory="auto")`` builds `BlockwiseAttention`. From about
there on, computing the weights twice takes no longer than moving them through memory (`python -m
benchmarks blockwise`)."""

BLOCK = 256
"""Queries of a block, unless a window is shorter."""

WINDOWS = 4
"""With a window, from this many of its lengths on: blocks then leave out most pairs."""


class AttentionScores(Scores):
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K, for each head.

    W_Q and W_K hold the columns of all heads side by side, so one product serves all heads.

    Attributes
    ----------
    rope_theta : float or None
        If there is one, queries and keys are turned by their positions: see `functional.rotary`.
    query_norm, key_norm : RMSNorm or None
        With `qk_norm`: of each head's query and key, before they are turned (Henry et al., 2020,
        arXiv 2010.04245). All heads share gamma.
    """

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        self.rope_theta: Any = settings.rope_theta
        init = initializers.INITIALIZERS.make(settings.initializer)
        drawn: Any = {"bias": settings.bias, "seed": rng, "dtype": dtype, "init": init}
        d_model, d_head = settings.d_model, settings.head_size
        self.query = Linear(d_model, settings.n_heads * d_head, **drawn)
        self.key = Linear(d_model, settings.kv_heads * d_head, **drawn)
        self.query_norm: RMSNorm | None = None
        self.key_norm: RMSNorm | None = None
        if settings.qk_norm:
            norms = [RMSNorm(d_head, settings.norm_eps, dtype=dtype) for _ in range(2)]
            self.query_norm, self.key_norm = norms

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        # Split into heads: [batch, heads, length, d_head]
        query, query_cache = self.split(self.query, self.query_norm, self.n_heads, x, context)
        key, key_cache = self.split(self.key, self.key_norm, self.n_kv_heads, x, context)
        repeat_cache = None
        if self.group > 1:
            key, repeat_cache = F.repeat_heads(key, self.group)
        scores, scores_cache = F.attention_scores(query, key)
        return scores, (query_cache, key_cache, repeat_cache, scores_cache)

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, repeat_cache, scores_cache = cache
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        if repeat_cache is not None:
            dkey = F.repeat_heads_backward(dkey, repeat_cache)
        # x is used twice, so its gradient is a sum
        dx = self.split_backward(self.key, self.key_norm, dkey, key_cache, gradients)
        return dx + self.split_backward(self.query, self.query_norm, dquery, query_cache, gradients)

    def split(
        self, part: Layer, norm: Layer | None, n: int, x: Array, context: Context, begin: Any = 0
    ) -> tuple[Array, Any]:
        """Return x W in n heads, normalised and turned if they are: (batch, n, length, d_head).

        `part` is `query` or `key`. The first token is at position `begin`, a number or one for each
        row.
        """
        mapped, map_cache = part.forward(x, context)
        heads, norm_cache, turn = F.split_heads(mapped, n), None, None
        if norm is not None:
            heads, norm_cache = norm.forward(heads, context)
        if self.rope_theta is not None:
            heads, turn = self.turned(heads, begin)
        return heads, (map_cache, norm_cache, turn)

    def turned(self, heads: Array, begin: Any = 0) -> tuple[Array, Any]:
        """Return queries or keys by head, turned, and what turns their gradient."""
        return F.rotary(heads, places(begin, heads.shape[2]), self.rope_theta)

    def split_backward(
        self, part: Layer, norm: Layer | None, dheads: Array, cache: Any, gradients: Gradients
    ) -> Array:
        """Gradient of `split`: add those of the parameters and return dx."""
        map_cache, norm_cache, turn = cache
        if turn is not None:
            dheads = F.rotary_backward(dheads, turn)
        if norm is not None:
            dheads = norm.backward(dheads, norm_cache, gradients)
        return part.backward(F.merge_heads(dheads), map_cache, gradients)

    def score_state_shapes(self, length: int) -> StateShapes:
        return {"key": (self.n_kv_heads, length, self.key.weight.shape[1] // self.n_kv_heads)}

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        key, _ = self.split(self.key, self.key_norm, self.n_kv_heads, x, context, state.stop)
        return {"key": key}

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        query, _ = self.split(self.query, self.query_norm, self.n_heads, x, context, state.begin)
        key, _ = F.repeat_heads(state.so_far("key"), self.group)
        return F.attention_scores(query, key)[0]


class Attention(AveragingMixer, AttentionScores):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    Parameters
    ----------
    memory : {"auto", "stored"}
        Whether to keep the weights, (batch, heads, length, length), for the backward pass. This
        class always does; `npformer.fast` may compute those of long sequences again, unless this is
        "stored". `BlockwiseAttention` never keeps them.
    rope_theta : float, optional
        Turns queries and keys by their positions (`functional.rotary`, in halves). None: they are
        compared as they are.
    n_kv_heads : int, optional
        Grouped queries (Ainslie et al., 2023): heads of keys and values, fewer than n_heads, which
        they divide. None: as many.
    d_head : int, optional
        Features of a head. None: d_model / n_heads.
    window : int, optional
        Local attention: see `functional.average`. None: a token sees all.
    qk_norm : bool
        Whether each head's query and key has an RMS norm, with `norm_eps`, before it is turned.
    bias : bool
        Whether the four maps have one.
    d_model, n_heads, causal, initializer, attention_dropout
        As in `AveragingMixer`.
    """

    memories: tuple[str, ...] = ("auto", "stored")  # the first is the default

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        memory: str | None = None,
        initializer: str = "xavier_uniform",
        attention_dropout: float = 0.0,
        rope_theta: float | None = None,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        window: int | None = None,
        qk_norm: bool = False,
        bias: bool = True,
        norm_eps: float = 1e-5,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        if isinstance(memory, str) and memory == "blocks" and memory not in self.memories:
            raise ValueError(
                "memory is 'blocks'; expected 'auto' or 'stored'. Attention in blocks is a class "
                "of its own, with the same parameters: BlockwiseAttention"
            )
        memory = self.memories[0] if memory is None else memory
        settings = MixerSettings(
            d_model,
            n_heads,
            causal=causal,
            initializer=initializer,
            attention_dropout=attention_dropout,
            rope_theta=rope_theta,
            n_kv_heads=n_kv_heads,
            d_head=d_head,
            window=window,
            qk_norm=qk_norm,
            bias=bias,
            norm_eps=norm_eps,
        )
        super().__init__(settings, seed=seed, dtype=dtype)
        self.memory = checks.choice("memory", memory, self.memories)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Attention:
        in_blocks = settings.memory == "blocks"
        whole = settings.attention_dropout > 0.0  # which weights it dropped must be kept
        long = LONG if settings.window is None else min(LONG, WINDOWS * settings.window)
        in_blocks |= settings.memory == "auto" and settings.max_len >= long and not whole
        kind = BlockwiseAttention if cls is Attention and in_blocks else cls
        names = "d_model", "n_heads", "causal", "memory", "initializer"
        return kind(**settings.only(*names, *TODAY), seed=seed, dtype=dtype)


class BlockwiseAttention(Attention):
    """`Attention` that takes some queries at a time, and computes their weights twice.

    It gives the same numbers with more work, in memory that grows with the length instead of its
    square: see `functional.blockwise_attention`.

    Parameters
    ----------
    memory : {"blocks", "auto"}
        With "auto", `npformer.fast` may store the weights.
    d_model, n_heads, causal, initializer, ...
        As in `Attention`. There is no dropout of weights: those that were dropped would have
        to be kept, and take as much memory as all weights.
    """

    memories = ("blocks", "auto")

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.attention_dropout > 0.0:
            raise ValueError(
                f"attention_dropout is {self.attention_dropout} and memory is 'blocks'; expected "
                "0, or memory='stored', because what was dropped has to be kept"
            )

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        # Split into heads: [batch, heads, length, d_head]
        query, query_cache = self.split(self.query, self.query_norm, self.n_heads, x, context)
        key, key_cache = self.split(self.key, self.key_norm, self.n_kv_heads, x, context)
        value, value_cache = self.value.forward(x, context)
        pair = key, F.split_heads(value, self.n_kv_heads)
        (key, value), repeats = zip(*(F.repeat_heads(a, self.group) for a in pair), strict=True)
        block = BLOCK if self.window is None else max(1, min(BLOCK, self.window))
        seen: Any = {"causal": self.causal, "block": block, "window": self.window}
        heads, heads_cache = F.blockwise_attention(
            query, key, value, over_heads(context.mask), **seen
        )
        return F.merge_heads(heads), (query_cache, key_cache, value_cache, repeats[0], heads_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, value_cache, repeat_cache, heads_cache = cache
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, *pair = F.blockwise_attention_backward(dheads, heads_cache)
        dkey, dvalue = (F.repeat_heads_backward(each, repeat_cache) for each in pair)
        # x is used three times, so its gradient is a sum
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_key = self.split_backward(self.key, self.key_norm, dkey, key_cache, gradients)
        dx_query = self.split_backward(self.query, self.query_norm, dquery, query_cache, gradients)
        return dx_value + dx_key + dx_query
