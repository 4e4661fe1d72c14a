"""Scaled dot-product attention (Vaswani et al., 2017, section 3.2)."""

import math
from typing import Any, NamedTuple

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import (
    allowed_pairs,
    average,
    average_backward,
    check_mask,
    visible,
    window_reach,
    zero_other_rows,
)
from npformer.functional.sums import lay_out


def attention_scores(query: Array, key: Array) -> tuple[Array, Any]:
    """S = Q K^T / sqrt(d_head): how well each query fits each key.

    Parameters
    ----------
    query : array, shape (..., query_length, d_head)
    key : array, shape (..., key_length, d_head)

    Returns
    -------
    scores : array, shape (..., query_length, key_length)

    Notes
    -----
    The dot product of two rows of d_head independent numbers, with mean 0 and variance 1, has
    variance d_head. Without the division, large heads would saturate the softmax, whose gradient
    would vanish.
    """
    check_attention(query, key, key)
    scale = 1.0 / math.sqrt(query.shape[-1])  # one number, for scores of variance 1
    # query, not scores, which are usually larger: L x L numbers, not L x d_head
    scaled = query * scale
    key = lay_out(key)
    scores = scaled @ key.swapaxes(-1, -2)  # [.., Lq, d], [.., d, Lk] -> [.., Lq, Lk]
    return scores, (scaled, key, scale)


def attention_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array]:
    """dQ = dS K / sqrt(d_head) and dK = dS^T Q / sqrt(d_head).

    In S_ij = sum_c Q_ic K_jc / sqrt(d_head), Q_ic is in the scores of query i with every key j, and
    K_jc in those of key j with every query i: dQ_ic is a sum over j of dS_ij K_jc / sqrt(d_head),
    and dK_jc one over i of dS_ij Q_ic / sqrt(d_head).
    """
    scaled, key, scale = cache
    checks.gradient(dscores, (*scaled.shape[:-1], key.shape[-2]), "dscores")
    dscores = lay_out(dscores)
    # scores = scaled @ key^T
    dkey = dscores.swapaxes(-1, -2) @ scaled  # [.., Lk, Lq], [.., Lq, d] -> [.., Lk, d]
    dscaled = dscores @ key  # [.., Lq, Lk], [.., Lk, d] -> [.., Lq, d]
    # scaled = query * scale
    return dscaled * scale, dkey  # dquery, dkey: shapes of query and key


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    begin: int = 0,
    window: int | None = None,
) -> tuple[Array, Any]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V.

    Parameters
    ----------
    query : array, shape (..., query_length, d_head)
    key : array, shape (..., key_length, d_head)
    value : array, shape (..., key_length, d_value)
        Leading axes, such as batch and heads, are the same in all three.
    mask, causal, begin, window
        As in `average`: with `causal`, query i sees keys 0 to begin + i; with a window, only those
        near it.

    Returns
    -------
    y : array, shape (..., query_length, d_value)
    """
    check_attention(query, key, value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]), reference=query)
        # What no pair uses may be NaN, and 0 * NaN would be NaN in dQ and dK.
        lengths = query.shape[-2], key.shape[-2]
        queries, keys = visible(allowed_pairs(mask, causal, key, lengths, begin, window))
        query, key = zero_other_rows(queries, query), zero_other_rows(keys, key)
    scores, scores_cache = attention_scores(query, key)  # S [.., Lq, Lk]
    # Y = softmax(S) V [.., Lq, d_value]: the mask acts between scores and weights.
    y, average_cache = average(scores, value, mask, causal, begin=begin, window=window)
    return y, (scores_cache, average_cache)


def scaled_dot_product_attention_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """dQ, dK and dV: back through the average, then through the scores."""
    scores_cache, average_cache = cache
    # y = average(scores, value)
    dscores, dvalue = average_backward(dy, average_cache)
    # scores = attention_scores(query, key)
    dquery, dkey = attention_scores_backward(dscores, scores_cache)
    return dquery, dkey, dvalue  # one for each array, in the order of the arguments


def blockwise_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    block: int = 256,
    begin: int = 0,
    window: int | None = None,
) -> tuple[Array, Any]:
    """`scaled_dot_product_attention` with less memory, for long sequences.

    Parameters
    ----------
    query, key, value, mask, causal, begin, window
        As in `scaled_dot_product_attention`.
    block : int
        Number of queries at a time. Memory for weights grows with block * key_length or, with a
        window, with block * (block + window): only keys that a block reaches are read.

    Notes
    -----
    Each query has its own softmax, so queries can be processed in blocks. The weights of a block
    are dropped, and computed again in the backward pass (Rabe and Staats, 2021, arXiv 2112.05682).
    """
    block = checks.positive("block", block)
    begin = checks.whole("begin", begin, at_least=0)
    window_reach(causal, window)  # for its errors, before anything is computed
    check_attention(query, key, value)
    xp = array_module(query)
    if mask is not None:
        # Checked as a whole: a mask with too many rows would fit once it is cut into blocks.
        check_mask(mask, (*query.shape[:-1], key.shape[-2]), reference=query)
    y = xp.empty((*query.shape[:-1], value.shape[-1]), dtype=query.dtype)  # [.., Lq, d_value]
    # The cache has no scores and no weights: that is the saving.
    blocks = _blocks(query, key, mask, causal, block, begin, window)
    # Each block of queries by itself, with the keys that it may see: its rows of y need no others.
    for one in blocks:
        y[..., one.rows, :], _ = _attention_of_block(one, query, key, value, causal, window)
    return y, (query, key, value, causal, window, blocks)


def blockwise_attention_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """dQ block by block. Blocks share K and V, so dK and dV are sums over the blocks."""
    query, key, value, causal, window, blocks = cache
    xp = checks.gradient(dy, (*query.shape[:-1], value.shape[-1]))
    # A query is in one block. A key and its value are in several, whose gradients add up.
    dquery, dkey, dvalue = xp.empty_like(query), xp.zeros_like(key), xp.zeros_like(value)
    for one in blocks:
        # y[rows] = scaled_dot_product_attention(...), whose cache was dropped
        _, block_cache = _attention_of_block(one, query, key, value, causal, window)
        dquery_rows, dkey_part, dvalue_part = scaled_dot_product_attention_backward(
            dy[..., one.rows, :], block_cache
        )
        dquery[..., one.rows, :] = dquery_rows
        dkey[..., one.keys, :] += dkey_part  # what this block's queries send back to the keys
        dvalue[..., one.keys, :] += dvalue_part  # and to the values
    return dquery, dkey, dvalue


def check_attention(query: Array, key: Array, value: Array) -> None:
    """Check that there are a key and a value for each token that is seen."""
    checks.floating(query=query, key=key, value=value)
    has_features = query.ndim > 1 and query.shape[-1] > 0
    differ_in_length_alone = (
        query.ndim == key.ndim
        and query.shape[:-2] == key.shape[:-2]
        and query.shape[-1] == key.shape[-1]
    )
    has_value_for_each_key = key.shape[:-1] == value.shape[:-1]
    if not (has_features and differ_in_length_alone and has_value_for_each_key):
        checks.shape("query", query, (None, "query_length", "d_head"))
        if query.shape[-1] == 0:
            raise ValueError(f"query has shape {tuple(query.shape)}; expected at least one feature")
        like_query = *query.shape[:-2], "key_length", query.shape[-1]
        checks.shape("key", key, like_query, "Only lengths may differ")
        like_key = *key.shape[:-1], "d_value"
        checks.shape("value", value, like_key, "One value for each key: see key's shape")


class _Block(NamedTuple):
    """Some queries, and the keys that they reach."""

    rows: slice
    keys: slice
    mask: Array | None  # of these pairs
    begin: int  # the position of the first query, counted from the first key


def _blocks(
    query: Array,
    key: Array,
    mask: Array | None,
    causal: bool,
    block: int,
    begin: int,
    window: int | None,
) -> list[_Block]:
    """Return the blocks of queries, each with the keys that it reaches."""
    length, last = query.shape[-2], key.shape[-2]
    behind, ahead = window_reach(causal, window)
    if mask is not None:
        mask = array_module(query).broadcast_to(mask, (*mask.shape[:-2], length, last))
    blocks = []
    for start in range(0, length, block):
        rows = slice(start, min(start + block, length))
        first = 0 if behind is None else max(0, min(begin + start - behind, last - 1))
        keys = slice(first, last if ahead is None else min(begin + rows.stop + ahead, last))
        block_mask = None if mask is None else mask[..., rows, keys]
        blocks.append(_Block(rows, keys, block_mask, begin + start - first))
    return blocks


def _attention_of_block(
    one: _Block, query: Array, key: Array, value: Array, causal: bool, window: int | None
) -> tuple[Array, Any]:
    """Return the attention of some queries to the keys that they reach."""
    return scaled_dot_product_attention(
        query[..., one.rows, :],
        key[..., one.keys, :],
        value[..., one.keys, :],
        mask=one.mask,
        causal=causal,
        begin=one.begin,
        window=window,
    )
