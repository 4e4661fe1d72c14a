"""Attention by a given pair of functions (forward, backward), or by a given softmax."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from collections.abc import Callable
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients
from npformer.functional.averaging import allowed_pairs
from npformer.functional.heads import over_heads
from npformer.layers.pooling import without_padding
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

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        maps = self.query, self.key, self.value
        # of [batch, length, d_model]
        (query, key, value), caches = zip(*(each.forward(x, context) for each in maps), strict=True)
        parts = query, key, without_padding(value, context.mask)
        by_head = [F.split_heads(part, self.n_heads) for part in parts]
        heads, heads_cache = self.attend[0](*by_head, over_heads(context.mask), self.causal)
        return F.merge_heads(heads), (*caches, heads_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        *caches, heads_cache = cache
        maps = self.query, self.key, self.value
        dheads = self.attend[1](F.split_heads(dmerged, self.n_heads), heads_cache)
        parts = zip(maps, map(F.merge_heads, dheads), caches, strict=True)
        dquery, dkey, dvalue = (each.backward(d, kept, gradients) for each, d, kept in parts)
        return dvalue + dkey + dquery  # x is used three times: its gradients add up


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
