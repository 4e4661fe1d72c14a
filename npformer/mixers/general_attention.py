"""Attention with what later papers added: groups, windows, rotations, norms, dropout, blocks.

Read `attention` first. Here each step that a setting may change is a separate method.
"""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed, checks, generators, initializers
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.functional.heads import check_heads, mask_for_heads
from npformer.layers import Linear, RMSNorm
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State, StateShapes, places
from npformer.mixers.attention import Attention, general_attention_settings
from npformer.mixers.attention_state import attend_to_state, shapes_of_keys_and_values
from npformer.mixers.mixer import MixerSettings, mask_weights
from npformer.mixers.window_state import WindowState

BLOCKWISE_FROM_LENGTH = 2048
"""From this `max_len` on, ``EncoderConfig(memory="auto")`` builds `BlockwiseAttention`: from about
this length on, computing the weights twice takes no longer than moving them through memory
(`python -m benchmarks blockwise`)."""

BLOCK = 256
"""Queries in a block, or the window if that is shorter."""

WINDOWS = 4
"""With a window, "auto" builds `BlockwiseAttention` from a `max_len` of this many windows on:
blocks then leave out most pairs."""


@drop_class_from_names
class GeneralAttention(Attention):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    Parameters
    ----------
    memory : {"auto", "stored"}
        Whether to keep the weights, (batch, heads, length, length), for the backward pass. This
        class always does; `npformer.fast` keeps those of up to 255 tokens, with "stored" those of
        up to 512, and computes others again. `BlockwiseAttention` never keeps them.
    attention_dropout : float
        Probability of dropping a weight while training, after the softmax.
    rope_theta : float, optional
        Rotates queries and keys by their positions (`functional.rotary`, in halves). None: they are
        compared as they are.
    n_kv_heads : int, optional
        Grouped queries (Ainslie et al., 2023): heads of keys and values, fewer than n_heads, which
        they divide. None: as many.
    d_head : int, optional
        Features of a head. None: d_model / n_heads.
    window : int, optional
        Local attention: see `functional.average`. None: a token sees all.
    qk_norm : bool
        Whether each head's query and key has an RMS norm, with `norm_eps`, before it is rotated
        (Henry et al., 2020, arXiv 2010.04245). All heads share gamma.
    d_model, n_heads, causal, initializer, bias
        As in `Attention`.

    Attributes
    ----------
    query, key, value, output : Linear
        W_Q, W_K, W_V and W_O.
    query_norm, key_norm : RMSNorm or None
    """

    memories: tuple[str, ...] = ("auto", "stored")  # the first is the default

    @refuse_unknown_arguments
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
        check_heads(d_model, n_heads, settings.n_kv_heads, settings.d_head)
        self.memory = self._check_memory(memory)
        self.n_heads = settings.n_heads
        self.n_kv_heads = settings.kv_heads
        self.rope_theta: Any = settings.rope_theta
        self._draw(settings, rng=generators.from_seed(seed), dtype=dtype)
        self.causal = settings.causal
        self.window = settings.window
        self.attention_dropout = float(settings.attention_dropout)

    def _check_memory(self, memory: str | None) -> str:
        if memory is None:
            return self.memories[0]
        if isinstance(memory, str) and memory == "blocks" and memory not in self.memories:
            raise ValueError(
                "memory is 'blocks'; expected 'auto' or 'stored'. Attention in blocks is another "
                "class, with the same parameters: BlockwiseAttention"
            )
        choice: str = checks.choice("memory", memory, self.memories)
        return choice

    def _draw(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        """Draw the four maps, and make the norms of queries and keys if there are any."""
        d_model = settings.d_model
        d_head = settings.head_size
        d_queries = settings.n_heads * d_head
        d_keys = settings.kv_heads * d_head
        bias = settings.bias
        init = initializers.INITIALIZERS.make(settings.initializer)
        self.query = Linear(d_model, d_queries, bias=bias, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_model, d_keys, bias=bias, seed=rng, dtype=dtype, init=init)
        self.query_norm: RMSNorm | None = None
        self.key_norm: RMSNorm | None = None
        if settings.qk_norm:
            self.query_norm = RMSNorm(d_head, settings.norm_eps, dtype=dtype)
            self.key_norm = RMSNorm(d_head, settings.norm_eps, dtype=dtype)
        self.value = Linear(d_model, d_keys, bias=bias, seed=rng, dtype=dtype, init=init)
        self.output = Linear(d_queries, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Attention:  # type: ignore[override]
        """Make the simplest attention that supports the settings."""
        attention_class: type[Attention] = cls
        if cls is GeneralAttention:
            attention_class = choose_attention_class(settings)
        if attention_class is Attention:
            return Attention.build(settings, seed=seed, dtype=dtype)
        options = settings.only(
            "d_model",
            "n_heads",
            "causal",
            "memory",
            "initializer",
            "attention_dropout",
            "rope_theta",
            "n_kv_heads",
            "d_head",
            "window",
            "qk_norm",
            "bias",
            "norm_eps",
        )
        return attention_class(**options, seed=seed, dtype=dtype)

    @property
    def group(self) -> int:
        """How many heads of queries share a head of keys and values."""
        return self.n_heads // self.n_kv_heads

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        x = finite_at_padding(x, context.padding)
        query, query_cache = self.queries(x, context)  # [batch, heads, length, d_head]
        key, key_cache = self.keys(x, context)  # [batch, n_kv_heads, length, d_head]
        value, value_cache = self.values(x, context)
        keys, repeated_cache = F.repeat_heads(key, self.group)  # one for each head of queries
        values, _ = F.repeat_heads(value, self.group)
        heads, heads_cache = self.attend(query, keys, values, context)
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        caches = query_cache, key_cache, value_cache, repeated_cache, heads_cache, output_cache
        return y, (caches, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, padding = cache
        query_cache, key_cache, value_cache, repeated_cache, heads_cache, output_cache = caches
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkeys, dvalues = self.attend_backward(dheads, heads_cache)
        dvalue = F.repeat_heads_backward(dvalues, repeated_cache)
        dkey = F.repeat_heads_backward(dkeys, repeated_cache)
        dx_value = self.values_backward(dvalue, value_cache, gradients)
        dx_key = self.keys_backward(dkey, key_cache, gradients)
        dx_query = self.queries_backward(dquery, query_cache, gradients)
        return self.sum_of_gradients(dx_query, dx_key, dx_value)

    def sum_of_gradients(self, dx_query: Array, dx_key: Array, dx_value: Array) -> Array:
        """Return dx: x is used three times, so its gradient is a sum."""
        return dx_value + (dx_key + dx_query)

    def queries(self, x: Array, context: Context, begin: Any = 0) -> tuple[Array, Any]:
        """Return the queries of x; its first token is at `begin`, a number or one for each row."""
        query, map_cache = self.query.forward(x, context)
        query, norm_rotary_cache = self.normalize_and_rotate(
            F.split_heads(query, self.n_heads), norm=self.query_norm, context=context, begin=begin
        )
        return query, (map_cache, norm_rotary_cache)

    def queries_backward(self, dquery: Array, cache: Any, gradients: Gradients) -> Array:
        """Return the gradient of x through the queries."""
        map_cache, norm_rotary_cache = cache
        dquery = self.normalize_and_rotate_backward(
            dquery, norm_rotary_cache, self.query_norm, gradients
        )
        return self.query.backward(F.merge_heads(dquery), map_cache, gradients)

    def keys(self, x: Array, context: Context, begin: Any = 0) -> tuple[Array, Any]:
        """Return the keys of x; its first token is at `begin`, a number or one for each row."""
        key, map_cache = self.key.forward(x, context)
        key, norm_rotary_cache = self.normalize_and_rotate(
            F.split_heads(key, self.n_kv_heads), norm=self.key_norm, context=context, begin=begin
        )
        return key, (map_cache, norm_rotary_cache)

    def keys_backward(self, dkey: Array, cache: Any, gradients: Gradients) -> Array:
        """Return the gradient of x through the keys."""
        map_cache, norm_rotary_cache = cache
        dkey = self.normalize_and_rotate_backward(dkey, norm_rotary_cache, self.key_norm, gradients)
        return self.key.backward(F.merge_heads(dkey), map_cache, gradients)

    def values(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the values of x."""
        value, map_cache = self.value.forward(x, context)
        return F.split_heads(value, self.n_kv_heads), map_cache

    def values_backward(self, dvalue: Array, cache: Any, gradients: Gradients) -> Array:
        """Return the gradient of x through the values."""
        return self.value.backward(F.merge_heads(dvalue), cache, gradients)

    def normalize_and_rotate(
        self, heads: Array, norm: RMSNorm | None, context: Context, begin: Any
    ) -> tuple[Array, Any]:
        """Return queries or keys, normalised and rotated if the settings say so."""
        norm_cache = None
        rotary_cache = None
        if norm is not None:
            heads, norm_cache = norm.forward(heads, context)
        if self.rope_theta is not None:
            heads, rotary_cache = self.rotate(heads, begin)
        return heads, (norm_cache, rotary_cache)

    def normalize_and_rotate_backward(
        self, dheads: Array, cache: Any, norm: RMSNorm | None, gradients: Gradients
    ) -> Array:
        """Return the gradient of queries or keys before the rotation and the norm."""
        norm_cache, rotary_cache = cache
        if rotary_cache is not None:
            dheads = F.rotary_backward(dheads, rotary_cache)
        if norm is not None:
            dheads = norm.backward(dheads, norm_cache, gradients)
        return dheads

    def rotate(self, heads: Array, begin: Any = 0) -> tuple[Array, Any]:
        """Return queries or keys rotated by their positions; the first token is at `begin`."""
        positions = places(begin, heads.shape[2])
        return F.rotary(heads, positions, theta=self.rope_theta, layout="halves")

    def attend(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        """Return the heads, (batch, heads, length, d_head), and what `attend_backward` needs."""
        rate = self.attention_dropout
        scores, scores_cache = F.attention_scores(query, key)
        heads, average_cache = F.average(
            scores,
            value,
            mask=mask_for_heads(context.mask),
            causal=self.causal,
            rate=rate,
            generator=context.dropout_generator() if rate > 0.0 else None,
            window=self.window,
        )
        return heads, (scores_cache, average_cache)

    def attend_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        """Return the gradients of queries, keys and values."""
        scores_cache, average_cache = cache
        dscores, dvalue = F.average_backward(dheads, average_cache)
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        return dquery, dkey, dvalue

    def explain(self, x: Array, context: Context) -> Array:
        query, _ = self.queries(x, context)
        key, _ = self.keys(x, context)
        keys, _ = F.repeat_heads(key, self.group)
        scores, _ = F.attention_scores(query, keys)
        mask = mask_for_heads(context.mask)
        weights, _ = F.averaging_weights(scores, mask, self.causal, self.window)
        return mask_weights(weights, context.mask)

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        n_tokens = length if self.window is None else self.window
        d_head = self.value.weight.shape[1] // self.n_kv_heads
        return shapes_of_keys_and_values(self.n_kv_heads, n_tokens, d_head)

    def start(self, batch: int, length: int, like: Array) -> State:
        shapes = self.state_shapes(length, d_model=like.shape[-1])
        if self.window is None:
            return State.empty(shapes, batch, like)
        return WindowState.empty(shapes, batch, like)

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        x = finite_at_padding(x, context.padding)
        query, _ = self.queries(x, context, begin=state.stop)
        key, _ = self.keys(x, context, begin=state.stop)
        value, _ = self.values(x, context)
        heads, state = attend_to_state(query, key, value, state, context, group=self.group)
        y, _ = self.output.forward(F.merge_heads(heads), context)
        return y, state


class BlockwiseAttention(GeneralAttention):
    """`GeneralAttention` that takes some queries at a time, and computes their weights twice.

    It gives the same numbers with more work, in memory that grows with the length instead of its
    square: see `functional.blockwise_attention`.

    Parameters
    ----------
    memory : {"blocks", "auto"}
        With "auto", `npformer.fast` may store the weights.
    d_model, n_heads, causal, initializer, ...
        As in `GeneralAttention`. Weights have no dropout: the dropped ones would have to be stored,
        which takes as much memory as all weights.
    """

    memories = ("blocks", "auto")

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.attention_dropout > 0.0:
            raise ValueError(
                f"attention_dropout is {self.attention_dropout} and memory is 'blocks'; expected "
                "0, or memory='stored', because the dropped weights have to be stored"
            )

    def attend(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        return F.blockwise_attention(
            query,
            key,
            value,
            mask=mask_for_heads(context.mask),
            causal=self.causal,
            block=BLOCK if self.window is None else max(1, min(BLOCK, self.window)),
            window=self.window,
        )

    def sum_of_gradients(self, dx_query: Array, dx_key: Array, dx_value: Array) -> Array:
        return dx_value + dx_key + dx_query  # one after the other, as they are computed

    def attend_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        return F.blockwise_attention_backward(dheads, cache)


def choose_attention_class(settings: MixerSettings) -> type[Attention]:
    """Return the simplest class of attention that supports the settings."""
    if is_blockwise(settings):
        return BlockwiseAttention
    if settings.memory == "stored" or general_attention_settings(settings):
        return GeneralAttention
    return Attention


def is_blockwise(settings: MixerSettings) -> bool:
    """Return whether attention takes its queries in blocks: if set, or if sequences are long."""
    if settings.memory != "auto":
        return settings.memory == "blocks"
    if settings.attention_dropout > 0.0:
        return False  # the dropped weights must be stored
    if settings.window is None:
        return settings.max_len >= BLOCKWISE_FROM_LENGTH
    return settings.max_len >= min(BLOCKWISE_FROM_LENGTH, WINDOWS * settings.window)
