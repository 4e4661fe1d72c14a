"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Seed, checks, initializers
from npformer.functional.heads import over_heads
from npformer.layers import Linear, RMSNorm
from npformer.layers.sequential import backward_chain, forward_chain
from npformer.layers.state import State, StateShapes, places
from npformer.mixers.averaging import AveragingMixer, Scores, SplitHeads
from npformer.mixers.mixer import TODAY, MixerSettings

LONG = 2048
"""From this `max_len` on, ``EncoderConfig(memory="auto")`` builds `BlockwiseAttention`. From about
there on, computing the weights twice takes no longer than moving them through memory (`python -m
benchmarks blockwise`)."""

BLOCK = 256
"""Queries of a block, unless a window is shorter."""

WINDOWS = 4
"""With a window, from this many of its lengths on: blocks then leave out most pairs."""


@dataclass
class Rotary:
    """Turns each head's queries or keys by their positions, as a link of a chain.

    The first token is at position `begin`, a number or one for each row.
    """

    theta: float
    begin: Any = 0
    layout: str = "halves"

    def forward(self, heads: Array, context: Context) -> tuple[Array, Any]:
        """See `functional.rotary`."""
        return F.rotary(heads, places(self.begin, heads.shape[2]), self.theta, self.layout)

    def backward(self, dheads: Array, cache: Any, gradients: Gradients) -> Array:
        """Return the gradient of what was turned."""
        return F.rotary_backward(dheads, cache)


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

    def queries(self, begin: Any = 0) -> list[Any]:
        """Return the chain that makes queries of x: (batch, heads, length, d_head).

        The first token of x is at position `begin`, a number or one for each row.
        """
        return [self.query, SplitHeads(self.n_heads), *self._after_split(self.query_norm, begin)]

    def keys(self, begin: Any = 0) -> list[Any]:
        """Return the chain that makes keys of x, (batch, n_kv_heads, length, d_head)."""
        return [self.key, SplitHeads(self.n_kv_heads), *self._after_split(self.key_norm, begin)]

    def _after_split(self, norm: Layer | None, begin: Any) -> list[Any]:
        """Return the links after the split, if there are any: a norm, and a turn."""
        turn = None if self.rope_theta is None else self.turn(begin)
        return [link for link in (norm, turn) if link is not None]

    def turn(self, begin: Any = 0) -> Rotary:
        """Return what turns queries and keys."""
        return Rotary(self.rope_theta, begin)

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = forward_chain(self.queries(), x, context)
        key, key_cache = forward_chain(self.keys() + self.repeats(), x, context)
        scores, scores_cache = F.attention_scores(query, key)  # [batch, heads, length, length]
        return scores, (query_cache, key_cache, scores_cache)

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, scores_cache = cache
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        # x is used twice, so its gradient is a sum
        dx = backward_chain(self.keys() + self.repeats(), dkey, key_cache, gradients)
        return dx + backward_chain(self.queries(), dquery, query_cache, gradients)

    def score_state_shapes(self, length: int) -> StateShapes:
        return {"key": (self.n_kv_heads, length, self.key.weight.shape[1] // self.n_kv_heads)}

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        return {"key": forward_chain(self.keys(state.stop), x, context)[0]}

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        query, _ = forward_chain(self.queries(state.begin), x, context)
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
        passed = [forward_chain(chain, x, context) for chain in self._chains()]
        (query, key, value), caches = zip(*passed, strict=True)
        block = BLOCK if self.window is None else max(1, min(BLOCK, self.window))
        seen = over_heads(context.mask), self.causal, block, 0, self.window  # 0: the first position
        heads, heads_cache = F.blockwise_attention(query, key, value, *seen)
        return F.merge_heads(heads), (caches, heads_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        caches, heads_cache = cache
        dheads = F.split_heads(dmerged, self.n_heads)
        dmade = F.blockwise_attention_backward(dheads, heads_cache)
        dx_query, dx_key, dx_value = (
            backward_chain(chain, d, each, gradients)
            for chain, d, each in zip(self._chains(), dmade, caches, strict=True)
        )
        return dx_value + dx_key + dx_query  # x is used three times, so its gradient is a sum

    def _chains(self) -> tuple[list[Any], ...]:
        """Return the chains that make queries, keys and values, of as many heads each."""
        return self.queries(), self.keys() + self.repeats(), self.values() + self.repeats()
