"""Scaled dot-product attention (Vaswani et al., 2017, section 3.2)."""

from __future__ import annotations

import math
from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import average, average_backward, check_mask


def attention_scores(query: Array, key: Array) -> tuple[Array, Any]:
    """S = Q K^T / sqrt(d_head): how well each query fits each key.

    Parameters
    ----------
    query : array, shape (..., query_length, d_head)
    key : array, shape (..., key_length, d_head)

    Returns
    -------
    scores : array, shape (..., query_length, key_length)
    cache : opaque
        For `attention_scores_backward`.

    Raises
    ------
    ValueError
        query and key differ in an axis other than length.

    Notes
    -----
    The product of two rows of d_head independent numbers, of mean 0 and variance 1, has variance
    d_head; without the division the softmax would saturate, and its gradient vanish, as heads grow.
    """
    checks.floating(query=query, key=key)
    checks.shape("query", query, (None, "query_length", "d_head"))
    like_query = *query.shape[:-2], "key_length", query.shape[-1]
    checks.shape("key", key, like_query, "Only lengths may differ")
    scale = 1.0 / math.sqrt(query.shape[-1])
    scaled = query * scale  # here, not on the scores: length x d_head is usually the smaller
    scores = scaled @ key.swapaxes(-1, -2)  # [.., Lq, d], [.., d, Lk] -> [.., Lq, Lk]
    return scores, (scaled, key, scale)


def attention_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `attention_scores`.

    Parameters
    ----------
    dscores : array, shape (..., query_length, key_length)
        Gradient of the loss with respect to the scores.
    cache : opaque
        From `attention_scores`.

    Returns
    -------
    dquery, dkey : array
        In the shapes of query and key.
    """
    scaled, key, scale = cache
    # scores = scaled @ key^T
    dkey = dscores.swapaxes(-1, -2) @ scaled  # [.., Lk, Lq], [.., Lq, d] -> [.., Lk, d]
    dscaled = dscores @ key  # [.., Lq, Lk], [.., Lk, d] -> [.., Lq, d]
    # scaled = query * scale
    return dscaled * scale, dkey


def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V.

    Parameters
    ----------
    query : array, shape (..., query_length, d_head)
    key : array, shape (..., key_length, d_head)
    value : array, shape (..., key_length, d_value)
        Leading axes, such as batch and heads, are the same in all three.
    mask : bool array, broadcastable to (..., query_length, key_length), optional
        True = keep.
    causal : bool
        Query i sees the keys 0 to i only.

    Returns
    -------
    y : array, shape (..., query_length, d_value)
        A query with nothing to see gives 0, and so do its gradients.
    cache : opaque
        For `scaled_dot_product_attention_backward`.

    Raises
    ------
    TypeError
        Dtypes or backends differ, or the mask is not boolean.
    ValueError
        Shapes do not fit.
    """
    scores, scores_cache = attention_scores(query, key)
    checks.floating(query=query, value=value)
    checks.shape(
        "value", value, (*key.shape[:-1], "d_value"), "One value for each key: see key's shape"
    )
    y, average_cache = average(scores, value, mask, causal)
    return y, (scores_cache, average_cache)


def scaled_dot_product_attention_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradients of `scaled_dot_product_attention`.

    Parameters
    ----------
    dy : array, shape (..., query_length, d_value)
        Gradient of the loss with respect to y.
    cache : opaque
        From `scaled_dot_product_attention`.

    Returns
    -------
    dquery, dkey, dvalue : array
        In the shapes of query, key and value.
    """
    scores_cache, average_cache = cache
    dscores, dvalue = average_backward(dy, average_cache)
    dquery, dkey = attention_scores_backward(dscores, scores_cache)
    return dquery, dkey, dvalue


def blockwise_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    block: int = 256,
) -> tuple[Array, Any]:
    """`scaled_dot_product_attention` for long sequences: the same numbers in bounded memory.

    Parameters
    ----------
    query, key, value, mask, causal
        As in `scaled_dot_product_attention`.
    block : int
        Queries at a time. Memory grows with block * key_length, not with the square of the length.

    Returns
    -------
    y : array, shape (..., query_length, d_value)
    cache : opaque
        For `blockwise_attention_backward`: the inputs, and no weights.

    Notes
    -----
    Each query's softmax is its own, so queries can be taken in blocks. The weights of a block are
    forgotten and computed again in the backward pass (Rabe and Staats, 2021, arXiv 2112.05682).
    """
    checks.positive("block", block)
    xp = checks.floating(query=query, key=key, value=value)
    checks.shape("query", query, (None, "query_length", "d_head"))
    checks.shape("key", key, (None, "key_length", query.shape[-1]))
    length = query.shape[-2]
    if mask is not None:
        # Here, for the whole: a mask cut into blocks would fit even if it has too many rows.
        check_mask(mask, (*query.shape[:-1], key.shape[-2]), near=query)
    y = xp.empty((*query.shape[:-1], value.shape[-1]), dtype=query.dtype)
    for start in range(0, length, block):
        rows = slice(start, min(start + block, length))
        y[..., rows, :], _ = scaled_dot_product_attention(
            query[..., rows, :], key, value, _mask_of(rows, query, key, mask, causal)
        )
    return y, (query, key, value, mask, causal, block)


def blockwise_attention_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradients of `blockwise_attention`.

    Parameters
    ----------
    dy : array, shape (..., query_length, d_value)
        Gradient of the loss with respect to y.
    cache : opaque
        From `blockwise_attention`.

    Returns
    -------
    dquery, dkey, dvalue : array
        Keys and values serve every block: their gradients add up.
    """
    query, key, value, mask, causal, block = cache
    xp = array_module(dy)
    dquery, dkey, dvalue = xp.empty_like(query), xp.zeros_like(key), xp.zeros_like(value)
    length = query.shape[-2]
    for start in range(0, length, block):
        rows = slice(start, min(start + block, length))
        _, again = scaled_dot_product_attention(
            query[..., rows, :], key, value, _mask_of(rows, query, key, mask, causal)
        )
        dquery[..., rows, :], dk, dv = scaled_dot_product_attention_backward(
            dy[..., rows, :], again
        )
        dkey += dk
        dvalue += dv
    return dquery, dkey, dvalue


def _mask_of(
    rows: slice, query: Array, key: Array, mask: Array | None, causal: bool
) -> Array | None:
    """Return what the queries in `rows` may see."""
    if mask is not None and mask.ndim > 1 and mask.shape[-2] != 1:
        mask = mask[..., rows, :]
    if not causal:
        return mask
    xp = array_module(query)
    triangle = xp.arange(rows.start, rows.stop)[:, None] >= xp.arange(key.shape[-2])
    return triangle if mask is None else mask & triangle
