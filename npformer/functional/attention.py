"""Scaled dot-product attention (Vaswani et al., 2017, section 3.2)."""

from __future__ import annotations

import math
from typing import Any

from npformer import checks
from npformer.backend import Array, array_module, backend_of
from npformer.functional.softmax import softmax, softmax_backward


def split_heads(x: Array, n_heads: int) -> Array:
    """View (batch, length, d_model) as (batch, heads, length, d_head); nothing is copied."""
    checks.shape("x", x, ("batch", "length", "d_model"))
    batch, length, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(
            f"x has {d_model} features and n_heads is {n_heads}; expected heads that divide them"
        )
    return x.reshape(batch, length, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)


def merge_heads(x: Array) -> Array:
    """(batch, heads, length, d_head) -> (batch, length, d_model): `split_heads` undone."""
    batch, n_heads, length, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, n_heads * d_head)


def allowed_pairs(
    mask: Array | None, causal: bool, query_length: int, key_length: int, near: Array
) -> Array | None:
    """Return which query may see which key: `mask` and the causal triangle; None for all.

    Parameters
    ----------
    mask : bool array, broadcastable to (..., query_length, key_length), or None
        True = keep.
    causal : bool
        Query i sees the keys 0 to i.
    query_length, key_length : int
        Sizes of the triangle.
    near : array
        The result lies on this array's backend.
    """
    if not causal:
        return mask
    xp = array_module(near)
    triangle = xp.tril(xp.ones((query_length, key_length), dtype=bool))
    return triangle if mask is None else mask & triangle


def check_pairs_mask(mask: Array | None, scores_shape: tuple[int, ...], **beside: Array) -> None:
    """Check that `mask` is boolean, broadcasts to (..., query_length, key_length) and lies on the
    backend of the array beside it.
    """
    if mask is None:
        return
    backend_of(**beside, mask=mask)
    if mask.dtype.name != "bool":
        checks.mask("mask", mask, mask.shape)
    tail = scores_shape[len(scores_shape) - mask.ndim :]
    if mask.ndim > len(scores_shape) or any(
        m not in (1, s) for m, s in zip(mask.shape, tail, strict=True)
    ):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; expected one that broadcasts to the scores, "
            f"{tuple(scores_shape)}. For a (batch, key_length) padding mask over heads write "
            "mask[:, None, None, :]"
        )


def attention_weights(
    query: Array, key: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Weights = softmax(Q K^T / sqrt(d_head)): how much each query takes from each key.

    Parameters
    ----------
    query : array, shape (..., query_length, d_head)
    key : array, shape (..., key_length, d_head)
    mask : bool array, broadcastable to (..., query_length, key_length), optional
        True = keep.
    causal : bool
        Query i sees the keys 0 to i only.

    Returns
    -------
    weights : array, shape (..., query_length, key_length)
        Rows sum to 1; a query with nothing to see has a row of 0.
    cache : opaque
        For `attention_weights_backward`.
    """
    checks.floating(query=query, key=key)
    checks.shape("query", query, (None, "query_length", "d_head"))
    checks.shape(
        "key", key, (*query.shape[:-2], "key_length", query.shape[-1]), "Only lengths may differ"
    )
    check_pairs_mask(mask, (*query.shape[:-1], key.shape[-2]), query=query)
    allowed = allowed_pairs(mask, causal, query.shape[-2], key.shape[-2], near=query)

    scale = 1.0 / math.sqrt(query.shape[-1])
    scaled = query * scale  # here, not on the scores: length x d_head is the smaller of the two
    scores = scaled @ key.swapaxes(-1, -2)  # [.., Lq, d], [.., d, Lk] -> [.., Lq, Lk]
    weights, softmax_cache = softmax(scores, mask=allowed)
    return weights, (scaled, key, scale, softmax_cache)


def attention_weights_backward(dweights: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `attention_weights`.

    Parameters
    ----------
    dweights : array, shape (..., query_length, key_length)
        Gradient of the loss with respect to the weights.
    cache : opaque
        From `attention_weights`.

    Returns
    -------
    dquery, dkey : array
        In the shapes of query and key.
    """
    scaled, key, scale, softmax_cache = cache
    # weights = softmax(scores)
    dscores = softmax_backward(dweights, softmax_cache)
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
    checks.floating(query=query, key=key, value=value)
    checks.shape(
        "value", value, (*key.shape[:-1], "d_value"), "One value for each key: see key's shape"
    )
    weights, weights_cache = attention_weights(query, key, mask, causal)
    y = weights @ value  # [.., Lq, Lk], [.., Lk, dv] -> [.., Lq, dv]
    return y, (weights, value, weights_cache)


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
    weights, value, weights_cache = cache
    # y = weights @ value
    dvalue = weights.swapaxes(-1, -2) @ dy  # [.., Lk, Lq], [.., Lq, dv] -> [.., Lk, dv]
    dweights = dy @ value.swapaxes(-1, -2)  # [.., Lq, dv], [.., dv, Lk] -> [.., Lq, Lk]
    dquery, dkey = attention_weights_backward(dweights, weights_cache)
    return dquery, dkey, dvalue
