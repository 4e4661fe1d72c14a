"""Cross-attention (Vaswani et al., 2017, section 3.2.3): tokens that attend to another sequence."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed, checks, generators, initializers
from npformer.core.inputs import TwoInputLayer
from npformer.functional.heads import check_heads, mask_for_heads
from npformer.layers.linear import Linear
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State


class CrossAttention(TwoInputLayer):
    """y = concat(head_1, ..., head_h) W_O, head_i = attention(x W_Q^i, m W_K^i, m W_V^i).

    The queries come from the tokens of x, in a decoder the target; keys and values come from those
    of m, the memory, in a decoder the encoder's output for the source::

        y, cache = layer.forward(x, memory, context)
        dx, dmemory = layer.backward(dy, cache, gradients)

    A token of x whose whole memory is padding takes nothing: its heads and their gradients are 0.

    Parameters
    ----------
    d_model, n_heads : int
        Each head averages d_model / n_heads features with weights of its own.
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
                "expected 0, or CrossAttention, because what was dropped has to be kept"
            )
        d_memory = d_model if d_memory is None else checks.positive("d_memory", d_memory)
        made: dict[str, Any] = {
            "seed": generators.from_seed(seed),
            "dtype": dtype,
            "init": initializers.INITIALIZERS.make(initializer),
        }
        self.n_heads = n_heads
        self.query = Linear(d_model, d_model, **made)
        self.key = Linear(d_memory, d_model, **made)
        self.value = Linear(d_memory, d_model, **made)
        self.output = Linear(d_model, d_model, **made)

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        x, of_memory = finite_at_padding(x, context.padding), context.for_memory()
        memory = finite_at_padding(memory, of_memory.padding)
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(memory, of_memory)  # [batch, memory_length, d_model]
        value, value_cache = self.value.forward(memory, of_memory)
        query, key, value = (F.split_heads(part, self.n_heads) for part in (query, key, value))
        heads, heads_cache = self.heads(
            query, key, value, context
        )  # [batch, heads, length, d_head]
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        caches = query_cache, key_cache, value_cache, heads_cache, output_cache
        return y, (caches, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        (query_cache, key_cache, value_cache, heads_cache, output_cache), padding = cache
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkey, dvalue = map(F.merge_heads, self.heads_backward(dheads, heads_cache))
        # the memory is used twice, so its gradient is a sum
        dmemory_value = self.value.backward(dvalue, value_cache, gradients)
        dmemory = dmemory_value + self.key.backward(dkey, key_cache, gradients)
        return self.query.backward(dquery, query_cache, gradients), dmemory

    def heads(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        """Return the heads, (batch, heads, length, d_head), and `heads_backward`'s cache."""
        rate = self.attention_dropout
        generator = context.dropout_generator() if rate > 0.0 else None
        scores, scores_cache = F.attention_scores(query, key)
        mask = mask_for_heads(context.memory_mask)
        heads, average_cache = F.average(scores, value, mask, rate=rate, generator=generator)
        return heads, (scores_cache, average_cache)

    def read(self, memory: Array, context: Context) -> State:
        """Return keys and values of a memory, and which of its tokens are not padding.

        For `look`: the tokens of a target come one at a time, and the memory stays the same.
        """
        of_memory = context.for_memory()
        memory = finite_at_padding(memory, of_memory.padding)
        key, _ = self.key.forward(memory, of_memory)
        value, _ = self.value.forward(memory, of_memory)
        kept = {
            "key": F.split_heads(key, self.n_heads),
            "value": F.split_heads(value, self.n_heads),
        }
        mask = {} if context.memory_mask is None else {"mask": context.memory_mask}
        return State(kept | mask)

    def look(self, x: Array, memory: State, context: Context) -> Array:
        """Return y at evaluation for tokens that attend to what `read` returned."""
        query, _ = self.query.forward(finite_at_padding(x, context.padding), context)
        scores, _ = F.attention_scores(F.split_heads(query, self.n_heads), memory["key"])
        heads, _ = F.average(scores, memory["value"], mask_for_heads(memory.get("mask")))
        return self.output.forward(F.merge_heads(heads), context)[0]

    def heads_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        """Gradient of `heads`: return those of queries, keys and values."""
        return F.scaled_dot_product_attention_backward(dheads, cache)

    def explain(self, x: Array, memory: Array, context: Context) -> Array:
        """Return the attention weights of each token for the memory, (batch, heads, Lx, Lm)."""
        query, key = self.query.forward(x, context)[0], self.key.forward(memory, context)[0]
        by_head = [F.split_heads(part, self.n_heads) for part in (query, key)]
        scores, _ = F.attention_scores(*by_head)
        return F.averaging_weights(scores, mask_for_heads(context.memory_mask))[0]


class BlockwiseCrossAttention(CrossAttention):
    """`CrossAttention` that takes some queries at a time, and computes their weights twice.

    It gives the same numbers with more work, in memory that grows with the lengths instead of their
    product: see `functional.blockwise_attention`. There is no dropout of weights, because those
    that were dropped would have to be kept.
    """

    keeps_weights = False

    def heads(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        return F.blockwise_attention(query, key, value, mask=mask_for_heads(context.memory_mask))

    def heads_backward(self, dheads: Array, cache: Any) -> tuple[Array, Array, Array]:
        return F.blockwise_attention_backward(dheads, cache)
