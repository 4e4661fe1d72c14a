"""Multi-head self-attention with its three projections as one product."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from npformer.core import Array, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.averaging import average, average_backward, parts_by_head
from npformer.engine.cpu.exponentials import longest_squares
from npformer.engine.cpu.linear import gradient_of_input, gradients_of_map
from npformer.engine.cpu.rows import UNIT, map_fits, pieces


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
    """concat(head_1, ..., head_h), head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    Replaces three `functional.linear` and `functional.scaled_dot_product_attention`, on x of shape
    (batch, length, d_model). `store` says whether to keep exp(scores) for the backward pass; None
    keeps it for short sequences.

    Each call copies the three weight matrices side by side, with the scale of the scores multiplied
    into the queries' third; the copy takes far less time than the product. Heads are strided views
    of the result.
    """
    if x.ndim != 3 or not map_fits(x, W_query, b_query):
        checks.floating(x=x, W=W_query)
        checks.shape("x", x, ("batch", "length", W_query.shape[0]))
    batch, length, d = x.shape
    scale = UNIT / math.sqrt(d // n_heads)
    W = context.empty((d, 3 * d), W_query)
    np.multiply(W_query, scale, out=W[:, :d])
    W[:, d : 2 * d] = W_key
    W[:, 2 * d :] = W_value
    rows = x.reshape(-1, d)
    qkv = context.empty((len(rows), 3 * d), x)
    bias = np.concatenate((b_query * scale, b_key, b_value))
    longest = [np.zeros(2)]

    def project(some: slice) -> None:
        np.matmul(rows[some], W, out=qkv[some])
        for piece in pieces(some, 3 * d):
            projected = qkv[piece]
            projected += bias
            longest.append(longest_squares(projected[:, : 2 * d], d // n_heads, 2))

    context.in_parts(project, len(rows))
    query, key, value = parts_by_head(qkv, batch, length, n_heads, 3)
    y = context.empty((batch, length, d), x)
    squares = longest[1] if len(longest) == 2 else np.max(longest, axis=0)
    bound = math.sqrt(math.prod(squares.tolist()))
    cache = average(query, key, value, y, context, longest=bound, causal=causal, store=store)
    return y, (rows, W, scale, cache, x.shape, n_heads, context)


def attention_heads_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients: dx, then dW and db of query, key and value."""
    rows, W, scale, averaged, x_shape, n_heads, context = cache
    batch, length, d = x_shape
    dqkv = context.empty((len(rows), 3 * d), rows)
    average_backward(dy, averaged, *parts_by_head(dqkv, batch, length, n_heads, 3))
    W_back = np.multiply(W, _factors(d, 1.0, W.dtype), out=context.empty(W.shape, W))
    dx = gradient_of_input(dqkv, W_back, context)
    dW, db = gradients_of_map(dqkv, rows, context)
    scales = _factors(d, scale, W.dtype)
    dW *= scales
    db *= scales
    gradients = [part for i in range(3) for part in (dW[:, i * d : (i + 1) * d], db[i * d :][:d])]
    return dx.reshape(x_shape), *gradients


@lru_cache(maxsize=64)
def _factors(d: int, scale: float, dtype: Any) -> Array:
    """Return a read-only factor for each column of query, key and value, with UNIT divided out."""
    factors = np.ones(3 * d, dtype)
    factors[:d] = scale / UNIT
    factors[d : 2 * d] = 1.0 / UNIT
    factors.flags.writeable = False
    return factors
