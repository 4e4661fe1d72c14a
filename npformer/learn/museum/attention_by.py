"""Attention by a given pair of functions (forward, backward), or by a given softmax."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from collections.abc import Callable
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients
from npformer.functional.averaging import allowed_pairs
from npformer.functional.heads import mask_for_heads
from npformer.layers.pooling import finite_at_padding, without_padding
from npformer.mixers import Attention

Pair = tuple[Callable[..., tuple[Array, Any]], Callable[..., Any]]  # (forward, backward)

RIGHT = F.scaled_dot_product_attention, F.scaled_dot_product_attention_backward


class AttentionBy(Attention):
    """`Attention` with a given pair in place of `functional.scaled_dot_product_attention`."""

    def __init__(
        self, d_model: int, n_heads: int, *, attend: Pair = RIGHT, **settings: Any
    ) -> None:
        super().__init__(d_model, n_heads, **settings)
        self.attend = attend

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        attend, _ = self.attend
        x = finite_at_padding(x, context.padding)
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        value = without_padding(value, context.mask)
        heads, heads_cache = attend(
            F.split_heads(query, self.n_heads),
            F.split_heads(key, self.n_heads),
            F.split_heads(value, self.n_heads),
            mask_for_heads(context.mask),
            self.causal,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        caches = query_cache, key_cache, value_cache, heads_cache, output_cache
        return y, (caches, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        _, attend_backward = self.attend
        caches, padding = cache
        query_cache, key_cache, value_cache, heads_cache, output_cache = caches
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dheads = F.split_heads(dmerged, self.n_heads)
        dquery, dkey, dvalue = attend_backward(dheads, heads_cache)
        dx_query = self.query.backward(F.merge_heads(dquery), query_cache, gradients)
        dx_key = self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        return dx_value + dx_key + dx_query  # x is used three times: its gradients add up


def with_softmax(
    softmax: Callable[..., tuple[Array, Any]], softmax_backward: Callable[..., Array]
) -> Pair:
    """Return attention as a pair that uses the given softmax."""

    def attend(
        query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
    ) -> tuple[Array, Any]:
        scores, scores_cache = F.attention_scores(query, key)
        allowed = allowed_pairs(mask, causal, scores, scores.shape[-2:])
        weights, softmax_cache = softmax(scores, mask=allowed)
        return weights @ value, (scores_cache, softmax_cache, weights, value)

    def attend_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
        scores_cache, softmax_cache, weights, value = cache
        dscores = softmax_backward(dy @ value.swapaxes(-1, -2), softmax_cache)
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        return dquery, dkey, weights.swapaxes(-1, -2) @ dy

    return attend, attend_backward
