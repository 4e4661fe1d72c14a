"""Cross-attention (Vaswani et al., 2017, section 3.2.3): tokens that attend to another sequence."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed, checks, generators, initializers
from npformer.core.inputs import TwoInputLayer
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.functional.heads import check_heads, mask_for_heads
from npformer.layers.linear import Linear
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State


@drop_class_from_names
class CrossAttention(TwoInputLayer):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, m W_K^i, m W_V^i).

    The queries come from the tokens of x, in a decoder the target; keys and values come from those
    of m, the memory, in a decoder the encoder's output for the source::

        y, cache = layer.forward(x, memory, context)
        dx, dmemory = layer.backward(dy, cache, gradients)

    If the whole memory of a token of x is padding, its heads and their gradients are 0.

    Parameters
    ----------
    d_model, n_heads : int
        Each head averages d_model / n_heads features with its own weights.
    d_memory : int, optional
        Features of a token of the memory; None: d_model.
    initializer : str
        A name in `INITIALIZERS`: what the projections are drawn from.
    attention_dropout : float
        Probability of dropping a weight while training, after the softmax.

    Attributes
    ----------
    query, key, value, output : Linear
        W_Q, W_K, W_V and W_O. The columns of all heads stand side by side.
    """

    keeps_weights = True

    @refuse_unknown_arguments
    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        d_memory: int | None = None,
        initializer: str = "xavier_uniform",
        attention_dropout: float = 0.0,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        self.attention_dropout = checks.rate("attention_dropout", attention_dropout)
        if attention_dropout > 0.0 and not self.keeps_weights:
            raise ValueError(
                f"attention_dropout is {attention_dropout} and the weights are computed again; "
                "expected 0, or CrossAttention, which stores the weights that were dropped"
            )
        d_memory = d_model if d_memory is None else checks.positive("d_memory", d_memory)
        rng = generators.from_seed(seed)
        init = initializers.INITIALIZERS.make(initializer)
        self.n_heads = n_heads
        self.query = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_memory, d_model, seed=rng, dtype=dtype, init=init)
        self.value = Linear(d_memory, d_model, seed=rng, dtype=dtype, init=init)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        memory_context = context.for_memory()
        x = finite_at_padding(x, context.padding)
        memory = finite_at_padding(memory, memory_context.padding)
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(memory, memory_context)  # [batch, memory_length, d_model]
        value, value_cache = self.value.forward(memory, memory_context)
        heads, heads_cache = self.heads(
            query=F.split_heads(query, self.n_heads),  # [batch, heads, length, d_head]
            key=F.split_heads(key, self.n_heads),
            value=F.split_heads(value, self.n_heads),
            context=context,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        caches = query_cache, key_cache, value_cache, heads_cache, output_cache
        return y, (caches, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        caches, padding = cache
        query_cache, key_cache, value_cache, heads_cache, output_cache = caches
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkey, dvalue = self.heads_backward(dheads, heads_cache)
        dmemory_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dmemory_key = self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        dx = self.query.backward(F.merge_heads(dquery), query_cache, gradients)
        return dx, dmemory_value + dmemory_key  # the memory is used twice

    def heads(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        """Return the heads, (batch, heads, length, d_head), and `heads_backward`'s cache."""
        rate = self.attention_dropout
        generator = context.dropout_generator() if rate > 0.0 else None
        scores, scores_cache = F.attention_scores(query, key)
        mask = mask_for_heads(context.memory_mask)
        heads, average_cache = F.average(scores, value, mask, rate=rate, generator=generator)
        return heads, (scores_cache, average_cache)

    def read(self, memory: Array, context: Context) -> State:
        """Return the keys, values and padding mask of a memory, for `look`.

        While a target is written token by token, its memory stays the same.
        """
        memory_context = context.for_memory()
        memory = finite_at_padding(memory, memory_context.padding)
        key, _ = self.key.forward(memory, memory_context)
        value, _ = self.value.forward(memory, memory_context)
        arrays = {
            "key": F.split_heads(key, self.n_heads),
            "value": F.split_heads(value, self.n_heads),
        }
        if context.memory_mask is not None:
            arrays["mask"] = context.memory_mask
        return State(arrays)

    def look(self, x: Array, memory: State, context: Context) -> Array:
        """Return y at evaluation for tokens that attend to what `read` returned."""
        query, _ = self.query.forward(finite_at_padding(x, context.padding), context)
        scores, _ = F.attention_scores(F.split_heads(query, self.n_heads), memory["key"])
        heads, _ = F.average(scores, memory["value"], mask_for_heads(memory.get("mask")))
        return self.output.forward(F.merge_heads(heads), context)[0]

    def heads_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        """Gradient of `heads`: return dquery, dkey and dvalue."""
        return F.scaled_dot_product_attention_backward(dheads, cache)

    def explain(self, x: Array, memory: Array, context: Context) -> Array:
        """Return the attention weights of each token for the memory, (batch, heads, Lx, Lm)."""
        query, _ = self.query.forward(x, context)
        key, _ = self.key.forward(memory, context)
        scores, _ = F.attention_scores(
            query=F.split_heads(query, self.n_heads), key=F.split_heads(key, self.n_heads)
        )
        weights, _ = F.averaging_weights(scores, mask_for_heads(context.memory_mask))
        return weights


class BlockwiseCrossAttention(CrossAttention):
    """`CrossAttention` that takes some queries at a time, and computes their weights twice.

    It gives the same numbers with more work, in memory that grows with the lengths instead of their
    product: see `functional.blockwise_attention`. Weights have no dropout, because the dropped ones
    would have to be stored.
    """

    keeps_weights = False

    def heads(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        return F.blockwise_attention(query, key, value, mask=mask_for_heads(context.memory_mask))

    def heads_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        return F.blockwise_attention_backward(dheads, cache)
