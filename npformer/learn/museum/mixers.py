"""Wrong mixers: Fourier mixing, and attention, whose bugs are mostly pairs (forward, backward)."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

import math
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context, Gradients
from npformer.functional.heads import mask_for_heads
from npformer.learn.museum.probes import KEPT
from npformer.learn.museum.table import GRADIENT, attention, attention_layer, bug, softmax
from npformer.mixers import Attention, Fourier


@softmax(1, *GRADIENT, "gradient_of_softmax")
def softmax_divided_by_the_batch(x: Array, **settings: Any) -> tuple[Array, Any]:
    """The backward pass of softmax divides by the batch size.

    Who: Someone who knows that the loss is a mean over the batch, and averages a second time.
    Why: dx_i = y_i (dy_i - sum_j dy_j y_j). The loss has already divided dy by the batch size.
    Cost: The gradients of queries and keys are too small: by a factor of the size of the batch.
    Caught: Gradient checks, for any batch of more than one sample.
    """
    return F.softmax(x, **settings)


def softmax_divided_by_the_batch_backward(dy: Array, cache: Any) -> Array:
    """Gradient of softmax, divided by the batch size."""
    return F.softmax_backward(dy, cache) / len(dy)


@softmax(16, "softmax_sums_to_1_over_the_last_axis")
def softmax_that_guesses_its_axis(
    x: Array, axis: int | None = None, mask: Array | None = None
) -> tuple[Array, Any]:
    """Softmax without an axis guesses one: for three axes, the first.

    Who: Someone who does not pass the axis. PyTorch then guesses too, with a warning.
    Why: Over axis 0 of (batch, length, length), the weights of one sample depend on the others, and
    a row no longer sums to 1.
    Cost: In a batch of two equal samples every weight is 0.5, whatever the scores are.
    Caught: The sums of the weights. No gradient check, because the backward pass uses the same
    axis.
    """
    if axis is None:
        axis = 0 if x.ndim in (1, 3) else 1
    return F.softmax(x, axis, mask)


@softmax(36, *GRADIENT, "gradient_of_softmax")
def softmax_with_its_diagonal(x: Array, **settings: Any) -> tuple[Array, Any]:
    """The backward pass of softmax is y (1 - y), the derivative of each entry by itself.

    Who: 2 of 26 public hand-written NumPy Transformers. It is the derivative of the sigmoid.
    Why: Every y_j depends on every x_i, through the sum of all exponentials. The derivatives are
    y_j ([i = j] - y_i): y_i (1 - y_i) is the diagonal, and the rest is missing.
    Cost: The gradients of queries and keys have another direction. Training goes on, by the values.
    Caught: Gradient checks.
    """
    return F.softmax(x, **settings)


def softmax_with_its_diagonal_backward(dy: Array, cache: Any) -> Array:
    """Gradient of softmax, without what other entries contribute."""
    y, *_ = cache
    return dy * y * (1.0 - y)


@attention(7, *GRADIENT, "queries_ask_and_keys_answer")
def attention_that_asks_the_keys(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Cross-attention uses the keys as queries.

    Who: Someone who passes (memory, memory, x) to a function that expects (x, memory, memory).
    Why: In softmax(Q K^T / sqrt(d)) V, row i of the result belongs to query i.
    Cost: The queries have no effect on the result, which has one row for each key instead of one
    for each query.
    Caught: Changing a query: the result stays the same. Gradient checks too, if the backward pass
    is that of right attention, because the true gradient of the queries is 0.
    """
    return F.scaled_dot_product_attention(key, key, value, mask, causal)


@attention_layer(10, *GRADIENT, "attention_averages_over_the_keys")
def attention_over_an_axis_of_length_1(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Attention's softmax runs over an axis of length 1.

    Who: Someone who adds an axis to make shapes fit, and then normalises over it.
    Why: Over a single entry, exp(s) / sum exp(s) is 1 whatever s is.
    Cost: Every token gets the sum of all tokens, padding included. Queries and keys have no effect.
    Caught: The sums of the weights. Gradient checks too, if the backward pass is that of right
    attention and was not derived from this forward pass.
    """
    scores, _ = F.attention_scores(query, key)
    weights = F.softmax(scores[..., None])[0][..., 0]
    return weights @ value, F.scaled_dot_product_attention(query, key, value)[1]


@attention_layer(19, "causal_attention_does_not_look_ahead", config={"causal": True})
def attention_that_looks_ahead(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """The causal mask is one token too wide.

    Who: Someone who counts diagonals from 1.
    Why: Query i may see keys 0 to i. If it sees key i + 1, a language model sees the very token it
    has to predict.
    Cost: The training loss goes to 0, and nothing useful is learned.
    Caught: Changing a token: an earlier one changes too. No gradient check, because the backward
    pass uses the same mask.
    """
    if causal:
        triangle = np.tril(np.ones((query.shape[-2], key.shape[-2]), dtype=bool), k=1)
        mask = triangle if mask is None else mask & triangle
    return F.scaled_dot_product_attention(query, key, value, mask)


@attention_layer(21, *GRADIENT, "padding_changes_no_kept_token", options={"mask": KEPT})
def attention_with_the_mask_turned_round(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """The padding mask is inverted.

    Who: Someone used to a library in which True means: leave this token out.
    Why: The weight of token j must be 0 where j is padding.
    Cost: Tokens see only padding, and in a sequence without padding they see nothing at all.
    Caught: Changing the values at padding, which must not matter. In a mixer, gradient checks
    notice it too: the mixer sets the values at padding to 0 and relies on their weights being 0.
    """
    mask = None if mask is None else ~mask
    return F.scaled_dot_product_attention(query, key, value, mask, causal)


@attention_layer(40, *GRADIENT, "gradient_of_attention")
def attention_that_masks_its_keys_twice(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """The backward pass gives a key nothing from the queries behind it.

    Who: At least one of 26 public hand-written NumPy Transformers. The causal mask is applied once
    more, to the transposed gradient of the scores.
    Why: dK = dS^T Q / sqrt(d). In causal attention key j is seen by the queries from j on, so that
    dS^T has its numbers above the diagonal. A mask that keeps those below leaves the diagonal.
    Cost: Earlier tokens get nothing through their keys: they do not learn to be found.
    Caught: Gradient checks, of more than one token.
    """
    return F.scaled_dot_product_attention(query, key, value, mask, causal)


def attention_that_masks_its_keys_twice_backward(
    dy: Array, cache: Any
) -> tuple[Array, Array, Array]:
    """Gradient of attention, with the lower triangle of dS^T for the keys."""
    scores_cache, average_cache = cache
    dscores, dvalue = F.average_backward(dy, average_cache)
    dquery, _ = F.attention_scores_backward(dscores, scores_cache)
    dkey_scores = np.tril(dscores.swapaxes(-1, -2)).swapaxes(-1, -2)
    _, dkey = F.attention_scores_backward(dkey_scores, scores_cache)
    return dquery, dkey, dvalue


@attention_layer(42, "scores_have_variance_1")
def attention_without_a_scale(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Scores are not divided by the root of d_head.

    Who: Someone who writes softmax(Q K^T) V first, to see whether it runs.
    Why: The product of two rows of d_head independent numbers of variance 1 has variance d_head.
    Divided by sqrt(d_head), it has variance 1, whatever d_head is.
    Cost: With 64 features in a head, scores differ by 8 and more: the softmax takes a single token,
    and gives its scores no gradient.
    Caught: The variance of the scores of normal queries and keys. No gradient check, because the
    backward pass leaves the root out too.
    """
    root = math.sqrt(query.shape[-1])
    return F.scaled_dot_product_attention(query * root, key, value, mask, causal)


def attention_without_a_scale_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradient of attention whose queries were multiplied by the root."""
    dquery, dkey, dvalue = F.scaled_dot_product_attention_backward(dy, cache)
    return dquery * math.sqrt(dquery.shape[-1]), dkey, dvalue


@bug(20, *GRADIENT, "attention_without_positions_knows_no_order")
class AttentionThatMergesByReshape(Attention):
    """Heads are merged by a reshape without a transpose.

    Who: Someone who sees that the sizes fit: both shapes hold the same number of entries.
    Why: (batch, heads, length, d) must become (batch, length, heads, d) before the last two axes
    are merged. Otherwise the features of different tokens are mixed up.
    Cost: Each token gets results of other tokens; which ones depends on the length.
    Caught: Permuting the tokens: the results are not permuted in the same way. Gradient checks too,
    if the backward pass splits the heads in the right way.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)
        key, key_cache = self.key.forward(x, context)
        value, value_cache = self.value.forward(x, context)
        heads, heads_cache = F.scaled_dot_product_attention(
            query=F.split_heads(query, self.n_heads),
            key=F.split_heads(key, self.n_heads),
            value=F.split_heads(value, self.n_heads),
            mask=mask_for_heads(context.mask),
            causal=self.causal,
        )
        batch, n_heads, length, d_head = heads.shape
        merged = heads.reshape(batch, length, n_heads * d_head)
        y, output_cache = self.output.forward(merged, context)
        caches = query_cache, key_cache, value_cache, heads_cache, output_cache
        return y, (caches, context.padding)


@bug(14, "padding_is_never_mixed_in_silence", "padding_changes_no_kept_token")
class FourierThatIgnoresTheMask(Fourier):
    """Fourier mixing silently mixes padding into the other tokens.

    Who: Anyone who follows the published code, which takes no mask.
    Why: Each entry of the transform is a sum over all positions, including padding.
    Cost: The result of a sequence depends on the length that its batch is padded to.
    Caught: Changing the values at padding, or passing a padding mask, which must be refused. No
    gradient check, because the backward pass mixes padding too.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.mix(x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return self.mix_backward(dy, cache, gradients)


@bug(14, "fourier_mixing_is_the_transform_of_its_own_length")
class FourierWithACorner(Fourier):
    """Short sequences are mixed with a corner of the matrix for a longer length.

    Who: Someone who computes the matrix of the transform once, for max_len.
    Why: Entry (j, k) of the matrix is exp(-2 pi i j k / n), where n is the length of the sequence.
    A corner of the matrix for another n is not a Fourier transform.
    Cost: The corner is nearly constant, so all tokens of a short sequence get nearly the same
    result.
    Caught: Comparing with a Fourier transform. No gradient check, because the backward pass uses
    the same matrix.
    """

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        length = x.shape[-2]
        whole = np.exp(-2j * np.pi * np.outer(np.arange(64), np.arange(64)) / 64)
        return (whole[:length, :length] @ np.fft.fft(x, axis=-1)).real, context

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, _ = self.mix(dy, cache)
        return dx
