"""Multi-head self-attention: three projections as one product, and no product copies an operand.

With P = softmax(Q K^T) and Y = P V, the products read their operands in these orders ("turned" is
transposed):

    forward    S = Q K^T             Q plain, K transposed
               Y = P V               V plain
    backward   dP = dY V^T           dY plain, V transposed
               dV^T = dY^T P         dY transposed
               dQ = dS K             K plain
               dK^T = Q^T dS         Q transposed

dV and dK come out transposed, in arrays with names in _T, and are copied into rows from there. Of
queries, keys and values only the projections are kept for the backward pass, which splits them into
heads again in its own orders.
"""

import math
from collections.abc import Iterator
from typing import Any

from npformer.core import Array, array_module, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.heads import (
    Sizes,
    heads_to_rows,
    padding_of,
    rows_to_heads,
    softmax_backward_in_place,
    softmax_of_scores,
)
from npformer.engine.gpu.source import contiguous
from npformer.engine.gpu.sums import column_sums

LONG = 2048
"""From this length on, `store=None` computes the weights again in the backward pass."""

SCORES = 1 << 26
"""Scores computed at once if they are not stored: 256 MiB in float32."""

Selection = tuple[slice | int, slice]
"""Some heads, or one, and some queries."""

ALL = slice(None)
"""All heads, or all queries: arrays are not sliced."""


def attention_heads(
    x: Array,
    W_query: Array,
    b_query: Array,
    W_key: Array,
    b_key: Array,
    W_value: Array,
    b_value: Array,
    n_heads: int,
    causal: bool,
    store: bool | None,
    context: EngineContext,
) -> tuple[Array, Any]:
    """Replaces three `functional.linear`, then `functional.scaled_dot_product_attention`.

    concat(head_1, ..., head_h), head_i = attention(x W_Q^i, x W_K^i, x W_V^i), on x of shape
    (batch, length, d_model). `store`: whether to keep the weights for the backward pass; None
    keeps them below length `LONG`.
    """
    xp = checks.floating(x=x, W=W_query)
    checks.shape("x", x, ("batch", "length", W_query.shape[0]))
    batch, length, d = x.shape
    sizes = batch, n_heads, length, d // n_heads
    scale = 1.0 / math.sqrt(d // n_heads)
    mask = padding_of(context, batch, length)
    rows = x.reshape(-1, d)
    W = xp.concatenate((W_query, W_key, W_value), axis=1)
    biases = (b_query, b_key, b_value)
    qkv = rows @ W
    (query, _, value), (_, key_T, _) = rows_to_heads(
        qkv, sizes, plain=(0, 2), transposed=(1,), biases=biases, scale=scale, mask=mask
    )
    stores_weights = (length < LONG if store is None else store) and context.keep
    y = xp.empty(query.shape, dtype=x.dtype)
    weights = None
    for heads, queries in _split_scores(len(query), length, stores_weights):
        weights = _weights(query, key_T, (heads, queries), sizes, mask, causal)
        xp.matmul(weights, _select(value, heads), out=_select(y, heads, queries))
    merged = heads_to_rows((y,), sizes).reshape(x.shape)
    stored = weights if stores_weights else None
    return merged, (rows, W, biases, qkv, stored, scale, mask, causal, sizes)


def attention_heads_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Replaces `functional.scaled_dot_product_attention_backward` and `linear_backward`.

    Gradients: dx, then dW and db of query, key and value.
    """
    rows, W, biases, qkv, weights, scale, mask, causal, sizes = cache
    xp = array_module(dy)
    batch, n_heads, length, d_head = sizes
    d, n = W.shape[0], batch * n_heads
    drows = contiguous(dy).reshape(-1, d)
    stores_weights = weights is not None
    by_rows = not stores_weights and length * length > SCORES
    plain: tuple[int, ...]
    transposed: tuple[int, ...]
    if stores_weights:
        plain, transposed = (1,), (0, 2)
    elif by_rows:
        plain, transposed = (0, 1), (1, 2)
    else:
        plain, transposed = (0, 1), (0, 1, 2)
    (query, key, _), (query_T, key_T, value_T) = rows_to_heads(
        qkv, sizes, plain=plain, transposed=transposed, biases=biases, scale=scale, mask=mask
    )
    (dout, *_), (dout_T, *_) = rows_to_heads(
        drows, sizes, plain=(0,), transposed=() if by_rows else (0,)
    )
    if by_rows:
        # Pieces of a single head are matrices, and their products take a transposed view uncopied.
        query_T, dout_T = query.swapaxes(-1, -2), dout.swapaxes(-1, -2)
    dquery = xp.empty((n, length, d_head), dtype=dy.dtype)
    dkey_T, dvalue_T = (xp.empty((n, d_head, length), dtype=dy.dtype) for _ in range(2))
    for heads, queries in _split_scores(n, length, stores_weights):
        block = heads, queries
        p = weights if stores_weights else _weights(query, key_T, block, sizes, mask, causal)
        dscores = _select(dout, heads, queries) @ _select(value_T, heads)
        softmax_backward_in_place(p, dscores)
        xp.matmul(dscores, _select(key, heads), out=_select(dquery, heads, queries))
        first = queries.start in (None, 0)
        _add(
            _select(dout_T, heads, ALL, queries),
            p,
            _select(dvalue_T, heads),
            first,
        )
        _add(
            _select(query_T, heads, ALL, queries),
            dscores,
            _select(dkey_T, heads),
            first,
        )
    gradients_of_heads = dquery, dkey_T, dvalue_T
    dqkv = heads_to_rows(gradients_of_heads, sizes, transposed=(1, 2), scale=scale)
    dW, db = rows.T @ dqkv, column_sums(dqkv)
    dx = (dqkv @ W.T).reshape(dy.shape)
    thirds = [slice(i * d, (i + 1) * d) for i in range(3)]
    return dx, *(gradient for third in thirds for gradient in (dW[:, third], db[third]))


def _weights(
    query: Array,
    key_T: Array,
    selection: Selection,
    sizes: Sizes,
    mask: Array | None,
    causal: bool,
) -> Array:
    """Replaces `functional.softmax` of Q K^T, for some heads, or some queries of one head."""
    (batch, _, length, _), (heads, queries) = sizes, selection
    scores = _select(query, heads, queries) @ _select(key_T, heads)
    head = heads if isinstance(heads, int) else heads.start or 0
    first = head * length + (queries.start or 0)
    softmax_of_scores(scores, batch, length, mask=mask, causal=causal, first=first)
    return scores


def _split_scores(n: int, length: int, all_at_once: bool) -> Iterator[Selection]:
    """Yield heads and queries to compute at once: all, some heads, or some queries of a head."""
    if all_at_once:
        yield ALL, ALL
    elif length * length <= SCORES:
        step = max(1, SCORES // (length * length))
        for start in range(0, n, step):
            yield slice(start, min(start + step, n)), ALL
    else:
        step = max(1, SCORES // length)
        for head in range(n):
            for start in range(0, length, step):
                yield head, slice(start, min(start + step, length))


def _select(x: Array, heads: slice | int, rows: slice = ALL, columns: slice = ALL) -> Array:
    selected = x if heads is ALL else x[heads]
    return selected if rows is ALL and columns is ALL else selected[..., rows, columns]


def _add(a: Array, b: Array, target: Array, first: bool) -> None:
    """target = a @ b, or target += a @ b."""
    if first:
        array_module(target).matmul(a, b, out=target)
    else:
        target += a @ b
