"""Wrong attention: pairs (forward, backward), and one layer that attends by any such pair."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed
from npformer.functional.averaging import allowed_pairs
from npformer.layers.pooling import without_padding
from npformer.mixers import Attention
from npformer.mixers.averaging import over_heads

Pair = tuple[Callable[..., tuple[Array, Any]], Callable[..., Any]]
"""(forward, backward)."""

RIGHT = F.scaled_dot_product_attention, F.scaled_dot_product_attention_backward


class AttentionBy(Attention):
    """`Attention` by a pair of functions: the place of a wrong pair in a model.

    Parameters
    ----------
    attend : (forward, backward)
        ``forward(query, key, value, mask, causal)``, as `functional.scaled_dot_product_attention`.
    d_model, n_heads, causal, seed, dtype
        As in `Attention`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        attend: Pair = RIGHT,
        causal: bool = False,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        super().__init__(d_model, n_heads, causal=causal, seed=seed, dtype=dtype)
        self.attend = attend

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.scores.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.scores.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        value = without_padding(value, context.mask)
        by_head = [F.split_heads(part, self.n_heads) for part in (query, key, value)]
        attend, _ = self.attend
        heads, heads_cache = attend(*by_head, over_heads(context.mask), self.causal)
        return F.merge_heads(heads), (query_cache, key_cache, value_cache, heads_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, value_cache, heads_cache = cache
        _, attend_backward = self.attend
        dheads = attend_backward(F.split_heads(dmerged, self.n_heads), heads_cache)
        dquery, dkey, dvalue = map(F.merge_heads, dheads)
        # x is used three times: its gradients add up
        dx = self.value.backward(dvalue, value_cache, gradients)
        dx = dx + self.scores.key.backward(dkey, key_cache, gradients)
        return dx + self.scores.query.backward(dquery, query_cache, gradients)


def with_softmax(
    softmax: Callable[..., tuple[Array, Any]], softmax_backward: Callable[..., Array]
) -> Pair:
    """Return the pair of attention whose softmax is a given one.

    Parameters
    ----------
    softmax, softmax_backward : callable
        As `functional.softmax` and its backward pass.
    """

    def attend(
        query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
    ) -> tuple[Array, Any]:
        scores, scores_cache = F.attention_scores(query, key)
        allowed = allowed_pairs(mask, causal, scores)
        weights, softmax_cache = softmax(scores, mask=allowed)
        return weights @ value, (scores_cache, softmax_cache, weights, value)

    def attend_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
        scores_cache, softmax_cache, weights, value = cache
        dscores = softmax_backward(dy @ value.swapaxes(-1, -2), softmax_cache)
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        return dquery, dkey, weights.swapaxes(-1, -2) @ dy

    return attend, attend_backward


# The bugs -----------------------------------------------------------------------------------------


def softmax_divided_by_the_batch(
    x: Array, axis: int = -1, mask: Array | None = None
) -> tuple[Array, Any]:
    """The backward pass of softmax divides by the batch size.

    Notes
    -----
    Who: Someone who knows that the loss is a mean over the batch, and takes the mean once more.

    Why: dx_i = y_i (dy_i - sum_j dy_j y_j). The mean over the batch is in dy already, once, by the
    loss.

    Cost: Whatever made the scores, queries and keys, learns a batch's size too slowly.

    Caught: By differences and by the complex step, for any batch of more than one sample:
    `gradient_of_softmax`.
    """
    return F.softmax(x, axis, mask)


def softmax_divided_by_the_batch_backward(dy: Array, cache: Any) -> Array:
    """Gradient of softmax, and wrong."""
    y, axis = cache
    dx = y * (dy - (dy * y).sum(axis=axis, keepdims=True))
    return dx / len(dy)


def softmax_that_guesses_its_axis(
    x: Array, axis: int | None = None, mask: Array | None = None
) -> tuple[Array, Any]:
    """Softmax without an axis guesses one: the first, if there are three.

    Notes
    -----
    Who: Someone who leaves dim out, where a framework guesses with a warning.

    Why: Over axis 0 of (batch, length, length), the weights of one sample depend on the others,
    and a row of a sample no longer sums to 1.

    Cost: In a batch of two equal samples each gets weights of 0.5, whatever the scores are.

    Caught: By no gradient check, for the backward pass has the same axis, but by the sums:
    `softmax_sums_to_1_over_the_last_axis`.
    """
    if axis is None:
        axis = 0 if x.ndim in (1, 3) else 1
    return F.softmax(x, axis, mask)


softmax_that_guesses_its_axis_backward = F.softmax_backward


def attention_that_asks_the_keys(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Cross-attention takes its queries from where its keys come from.

    Notes
    -----
    Who: Someone who passes (memory, memory, x) to a function that expects (x, memory, memory).

    Why: softmax(Q K^T / sqrt(d)) V: Q is of those who ask, K and V of those who are asked. Row i of
    the result answers query i.

    Cost: The queries have no say, and there are as many answers as keys.

    Caught: By differences and by the complex step, as long as the backward pass is attention's own:
    the queries' true gradient is 0. And by asking: `queries_ask_and_keys_answer`.
    """
    return F.scaled_dot_product_attention(key, key, value, mask, causal)


attention_that_asks_the_keys_backward = F.scaled_dot_product_attention_backward


def attention_over_an_axis_of_length_1(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Attention's softmax runs over an axis of length 1.

    Notes
    -----
    Who: Someone who adds an axis to make shapes fit, and then normalises over it.

    Why: exp(s) / sum exp(s) over one entry is 1, whatever s is: nothing is weighed.

    Cost: Every token gets the sum of all tokens; queries and keys have no say, and padding has.

    Caught: By differences and by the complex step, as long as the backward pass is attention's own.
    Not if it is derived from this forward pass: then only by the weights' sums,
    `attention_averages_over_the_keys`.
    """
    scores, scores_cache = F.attention_scores(query, key)
    weights = F.softmax(scores[..., None])[0][..., 0]
    return weights @ value, (scores_cache, (weights, value, (weights, -1), scores.shape))


attention_over_an_axis_of_length_1_backward = F.scaled_dot_product_attention_backward


def attention_that_looks_ahead(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """The causal triangle begins one place too far right.

    Notes
    -----
    Who: Someone who counts diagonals from 1.

    Why: Query i may see keys 0 to i. With i + 1 a language model sees the token it is to predict:
    the training loss goes to 0, and nothing was learned.

    Cost: A model that is perfect in training and useless without the answers.

    Caught: By no gradient check, but by a token that changes with a later one:
    `causal_attention_does_not_look_ahead`.
    """
    if causal:
        triangle = np.tril(np.ones((query.shape[-2], key.shape[-2]), dtype=bool), k=1)
        mask = triangle if mask is None else mask & triangle
    return F.scaled_dot_product_attention(query, key, value, mask)


attention_that_looks_ahead_backward = F.scaled_dot_product_attention_backward


def attention_with_the_mask_turned_round(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """The padding mask is read the wrong way round.

    Notes
    -----
    Who: Someone who comes from a library in which True means: mask this one.

    Why: weights_ij = 0 where token j is padding. Turned round, only padding is looked at.

    Cost: The tokens see nothing but padding, and a sequence without padding sees nothing at all.

    Caught: By what padding holds, which must not matter: `padding_changes_no_kept_token`. By
    differences and by the complex step too, but only inside a mixer, which sets values at padding
    to 0 and counts on weights of 0 there.
    """
    mask = None if mask is None else ~mask
    return F.scaled_dot_product_attention(query, key, value, mask, causal)


attention_with_the_mask_turned_round_backward = F.scaled_dot_product_attention_backward


class AttentionThatMergesByReshape(Attention):
    """Heads are merged by a reshape alone.

    Parameters
    ----------
    d_model, n_heads, causal, memory, seed, dtype
        As in `Attention`.

    Notes
    -----
    Who: Someone whose shapes fit: (batch, heads, length, d) holds as many numbers.

    Why: (batch, heads, length, d) must become (batch, length, heads, d) before the last two axes
    are one. Else a token's features are other tokens'.

    Cost: Each token gets the results of others, by a rule that depends on the length.

    Caught: By differences and by the complex step, as long as the backward pass merges rightly; and
    by another order of the tokens: `attention_without_positions_knows_no_order`.
    """

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        merged, cache = super().heads(x, context)
        by_head = F.split_heads(merged, self.n_heads)
        batch, n_heads, length, d_head = by_head.shape
        return by_head.reshape(batch, length, n_heads * d_head), cache
