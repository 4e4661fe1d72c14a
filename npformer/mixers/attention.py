"""Multi-head self-attention (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed, checks, initializers
from npformer.core.state import State, StateShapes, places
from npformer.functional.heads import over_heads
from npformer.layers import Linear
from npformer.mixers.averaging import AveragingMixer, Scores
from npformer.mixers.mixer import MixerSettings

LONG = 2048
"""From this `max_len` on, ``EncoderConfig(memory="auto")`` builds `BlockwiseAttention`. From about
there on, computing the weights twice takes no longer than moving them through memory (`python -m
benchmarks blockwise`)."""


class AttentionScores(Scores):
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K, for each head.

    W_Q and W_K hold the columns of all heads side by side, so one product serves all heads.

    Attributes
    ----------
    rope_theta : float or None
        If there is one, queries and keys are turned by their positions: see `functional.rotary`.
    """

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        self.rope_theta = settings.rope_theta
        d_model, init = settings.d_model, initializers.INITIALIZERS.make(settings.initializer)
        self.query = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        query, turn = self.by_head(query)  # [batch, heads, length, d_head]
        key, _ = self.by_head(key)
        scores, scores_cache = F.attention_scores(query, key)
        return scores, (query_cache, key_cache, scores_cache, turn)

    def by_head(self, part: Array, begin: Any = 0) -> tuple[Array, Any]:
        """Return queries or keys by head, turned if they are, and what turns their gradient back.

        The first token is at position `begin`, a number or one for each row.
        """
        heads = F.split_heads(part, self.n_heads)
        if self.rope_theta is None:
            return heads, None
        return F.rotary(heads, places(begin, part.shape[1]), self.rope_theta)

    def merged(self, dheads: Array, turn: Any) -> Array:
        """Return the gradient of what `by_head` was given."""
        return F.merge_heads(dheads if turn is None else F.rotary_backward(dheads, turn))

    def score_state_shapes(self, length: int) -> StateShapes:
        return {"key": (self.n_heads, length, self.key.weight.shape[1] // self.n_heads)}

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        return {"key": self.by_head(self.key.forward(x, context)[0], state.stop)[0]}

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        query, _ = self.by_head(self.query.forward(x, context)[0], state.begin)
        return F.attention_scores(query, state.so_far("key"))[0]

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, scores_cache, turn = cache
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        # x is used twice, so its gradient is a sum
        dx_key = self.key.backward(self.merged(dkey, turn), key_cache, gradients)
        return dx_key + self.query.backward(self.merged(dquery, turn), query_cache, gradients)


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
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        if isinstance(memory, str) and memory == "blocks" and memory not in self.memories:
            raise ValueError(
                "memory is 'blocks'; expected 'auto' or 'stored'. Attention in blocks is a class "
                "of its own, with the same parameters: BlockwiseAttention"
            )
        memory = self.memories[0] if memory is None else memory
        averaging: dict[str, Any] = {"causal": causal, "attention_dropout": attention_dropout}
        averaging["rope_theta"] = rope_theta
        settings = MixerSettings(d_model, n_heads, initializer=initializer, **averaging)
        super().__init__(settings, seed=seed, dtype=dtype)
        self.memory = checks.choice("memory", memory, self.memories)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Attention:
        in_blocks = settings.memory == "blocks"
        whole = settings.attention_dropout > 0.0  # which weights it dropped must be kept
        in_blocks |= settings.memory == "auto" and settings.max_len >= LONG and not whole
        kind = BlockwiseAttention if cls is Attention and in_blocks else cls
        names = "d_model", "n_heads", "causal", "memory", "initializer"
        more = "attention_dropout", "rope_theta"
        return kind(**settings.only(*names, *more), seed=seed, dtype=dtype)


class BlockwiseAttention(Attention):
    """`Attention` that takes some queries at a time, and computes their weights twice.

    It gives the same numbers with more work, in memory that grows with the length instead of its
    square: see `functional.blockwise_attention`.

    Parameters
    ----------
    memory : {"blocks", "auto"}
        With "auto", `npformer.fast` may store the weights.
    d_model, n_heads, causal, initializer, rope_theta
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
        maps = self.query, self.key, self.value
        parts, caches = zip(*(each.forward(x, context) for each in maps), strict=True)
        (query, turn), (key, _) = map(self.by_head, parts[:2])
        value, mask = F.split_heads(parts[2], self.n_heads), over_heads(context.mask)
        # of [batch, heads, length, d_head]
        heads, heads_cache = F.blockwise_attention(query, key, value, mask, self.causal)
        return F.merge_heads(heads), (*caches, heads_cache, turn)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, value_cache, heads_cache, turn = cache
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkey, dvalue = F.blockwise_attention_backward(dheads, heads_cache)
        # x is used three times, so its gradient is a sum
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_key = self.key.backward(self.merged(dkey, turn), key_cache, gradients)
        dx_query = self.query.backward(self.merged(dquery, turn), query_cache, gradients)
        return dx_value + dx_key + dx_query
