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
from npformer.engine.cpu.rows import FUSED, UNIT, leaf, map_fits, pieces, read_only
from npformer.functional.rotary import rotations

VECTOR = 16
"""Numbers that a loop sums at a time: heads are too short for the loops that LLVM makes."""


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
    rope_theta: float | None = None,
    *,
    context: EngineContext,
) -> tuple[Array, Any]:
    """concat(head_1, ..., head_h), head_i = attention(x W_Q^i, x W_K^i, x W_V^i).

    Replaces three `functional.linear` and `functional.scaled_dot_product_attention`, on x of shape
    (batch, length, d_model). `store` says whether to keep exp(scores) for the backward pass; None
    keeps it for short sequences. With `rope_theta` queries and keys are turned, as by
    `functional.rotary`, which changes the length of none.

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
    turns = None if rope_theta is None else turns_of(length, d // n_heads, rope_theta, x.dtype.name)

    def project(some: slice) -> Array:
        np.matmul(rows[some], W, out=qkv[some])
        longest = add_bias(qkv[some], bias, d // n_heads)
        if turns is not None:
            turn_rows(qkv[some], *turns, some.start)
        return longest

    squares = np.max(context.in_parts(project, len(rows)), axis=0)
    query, key, value = parts_by_head(qkv, batch, length, n_heads, 3)
    y = context.empty((batch, length, d), x)
    bound = math.sqrt(math.prod(squares.tolist()))
    cache = average(query, key, value, y, context, longest=bound, causal=causal, store=store)
    return y, (rows, W, scale, cache, x.shape, n_heads, turns, context)


def attention_heads_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients: dx, then dW and db of query, key and value."""
    rows, W, scale, averaged, x_shape, n_heads, turns, context = cache
    batch, length, d = x_shape
    dqkv = context.empty((len(rows), 3 * d), rows)
    average_backward(dy, averaged, *parts_by_head(dqkv, batch, length, n_heads, 3))
    if turns is not None:
        cosine, sine = turns
        context.in_parts(lambda some: turn_rows(dqkv[some], cosine, -sine, some.start), len(rows))
    W_back = np.multiply(W, _factors(d, 1.0, W.dtype), out=context.empty(W.shape, W))
    dx = gradient_of_input(dqkv, W_back, context)
    dW, db = gradients_of_map(dqkv, rows, context)
    scales = _factors(d, scale, W.dtype)
    dW *= scales
    db *= scales
    gradients = [part for i in range(3) for part in (dW[:, i * d : (i + 1) * d], db[i * d :][:d])]
    return dx.reshape(x_shape), *gradients


def _loop(qkv, bias, d_head):  # type: ignore[no-untyped-def]
    n, d = len(qkv), qkv.shape[1] // 3
    longest, none = np.zeros(2, qkv.dtype), qkv.dtype.type(0.0)
    for i in range(n):
        row = qkv[i]
        for j in range(3 * d):
            row[j] += bias[j]
        for part in range(2):
            for first in range(part * d, (part + 1) * d, d_head):
                square, last = none, first + d_head
                vectors = last - d_head % VECTOR
                for start in range(first, vectors, VECTOR):
                    for j in range(VECTOR):  # a number of times that LLVM knows
                        square += row[start + j] * row[start + j]
                for j in range(vectors, last):
                    square += row[j] * row[j]
                if not square <= longest[part] and longest[part] == longest[part]:
                    longest[part] = square  # NaN remains
    return longest


@leaf(_loop)
def add_bias(qkv: Array, bias: Array, d_head: int) -> Array:
    """Add the bias to rows of queries, keys and values; return the largest |q|^2 and |k|^2.

    These are of heads, and NaN if there is NaN.
    """
    d, longest = qkv.shape[1] // 3, [np.zeros(2, qkv.dtype)]
    for piece in pieces(len(qkv), 3 * d):
        projected = qkv[piece]
        projected += bias
        longest.append(longest_squares(projected[:, : 2 * d], d_head, 2))
    found: Array = np.max(longest, axis=0)
    return found


def _turn_loop(qkv, cosine, sine, first):  # type: ignore[no-untyped-def]
    d, (length, half) = qkv.shape[1] // 3, cosine.shape
    for i in range(len(qkv)):
        c, s = cosine[(first + i) % length], sine[(first + i) % length]
        for start in range(0, 2 * d, 2 * half):
            a, b = qkv[i, start : start + half], qkv[i, start + half : start + 2 * half]
            for j in range(half):
                turned = a[j] * c[j] - b[j] * s[j]
                b[j] = a[j] * s[j] + b[j] * c[j]
                a[j] = turned


@leaf(_turn_loop, FUSED)
def turn_rows(qkv: Array, cosine: Array, sine: Array, first: int) -> None:
    """Turn the queries and keys of rows, the first of which is the row `first` of the batch."""
    d, (length, half) = qkv.shape[1] // 3, cosine.shape
    for piece in pieces(len(qkv), 3 * d):
        at = np.arange(first + piece.start, first + piece.stop) % length
        c, s = cosine[at][:, None], sine[at][:, None]
        pairs = qkv[piece, : 2 * d].reshape(len(at), -1, 2, half)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        turned = a * c - b * s
        b *= c
        b += a * s
        a[...] = turned


@lru_cache(maxsize=64)
def turns_of(length: int, d_head: int, theta: float, dtype: str) -> tuple[Array, Array]:
    """Return read-only cosines and sines of the angles at the first positions."""
    cosine, sine = rotations(np.arange(length), d_head, theta, dtype)
    return read_only(cosine), read_only(sine)


@lru_cache(maxsize=64)
def _factors(d: int, scale: float, dtype: Any) -> Array:
    """Return a read-only factor for each column of query, key and value, with UNIT divided out."""
    factors = np.ones(3 * d, dtype)
    factors[:d] = scale / UNIT
    factors[d : 2 * d] = 1.0 / UNIT
    return read_only(factors)
