"""Multi-head self-attention with its three projections as one product."""

import math
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from npformer.core import Array, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.averaging import (
    average_backward_in_tiles,
    average_in_tiles,
    views_of_heads,
)
from npformer.engine.cpu.exponentials import longest_square
from npformer.engine.cpu.linear import gradient_of_input, gradients_of_map
from npformer.engine.cpu.rows import FUSED, UNIT, chunks, leaf, map_fits, read_only, zeros
from npformer.functional.heads import repeat_heads
from npformer.functional.rotary import rotations
from npformer.functional.sums import lay_out

VECTOR = 16
"""Numbers that a loop sums at a time: heads are too short for the loops that LLVM generates."""


class Columns:
    """The columns of n_heads queries, kv_heads keys and kv_heads values, side by side.

    Attributes
    ----------
    queries, keys : int
        Numbers of columns of queries and of keys; there are as many of values as of keys.
    slices, heads : tuple of slice
        The columns, and the heads, of queries, of keys and of values.
    """

    def __init__(self, n_heads: int, kv_heads: int, d_head: int) -> None:
        self.kv_heads, self.d_head = kv_heads, d_head
        self.group = n_heads // kv_heads
        self.queries, self.keys = n_heads * d_head, kv_heads * d_head
        self.slices = _adjacent_slices(self.queries, self.keys)
        self.heads = _adjacent_slices(n_heads, kv_heads)


def _adjacent_slices(q: int, k: int) -> tuple[slice, slice, slice]:
    return slice(0, q), slice(q, q + k), slice(q + k, q + 2 * k)


columns_of = lru_cache(maxsize=64)(Columns)


def attention_heads(
    x: Array,
    W_query: Array,
    b_query: Array | None,
    W_key: Array,
    b_key: Array | None,
    W_value: Array,
    b_value: Array | None,
    n_heads: int,
    causal: bool,
    store: bool | None,
    rope_theta: float | None = None,
    window: int | None = None,
    kv_heads: int | None = None,
    *,
    context: EngineContext,
) -> tuple[Array, Any]:
    """Replaces three `functional.linear`, then `functional.scaled_dot_product_attention`.

    concat(head_1, ..., head_h), head_i = attention(x W_Q^i, x W_K^i, x W_V^i), on x of shape
    (batch, length, d_model). There are `kv_heads` keys and values; None: n_heads. `store`:
    whether to keep exp(scores) for the backward pass; None keeps it for short sequences. With
    `rope_theta`, queries and keys are rotated as by `functional.rotary`, which keeps their lengths.

    Each call copies the three weight matrices side by side, with the scale of the scores multiplied
    into the queries' part; the copy takes far less time than the product. Heads are strided views
    of the result, unless keys and values are repeated for several heads.
    """
    if x.ndim != 3 or not map_fits(x, W_query, b_query):
        checks.floating(x=x, W=W_query)
        checks.shape("x", x, ("batch", "length", W_query.shape[0]))
    batch, length, d = x.shape
    columns = columns_of(n_heads, kv_heads or n_heads, W_query.shape[1] // n_heads)
    scale, d_head = UNIT / math.sqrt(columns.d_head), columns.d_head
    queries, keys, values = columns.slices
    W = context.empty((d, values.stop), W_query)
    np.multiply(W_query, scale, out=W[:, queries])
    W[:, keys], W[:, values] = W_key, W_value
    biases = b_query, b_key, b_value
    bias = np.concatenate(
        (
            zeros(columns.queries, x.dtype) if b_query is None else b_query,
            zeros(columns.keys, x.dtype) if b_key is None else b_key,
            zeros(columns.keys, x.dtype) if b_value is None else b_value,
        )
    )
    bias[queries] *= scale
    rows = lay_out(x.reshape(-1, d))
    qkv = context.empty((len(rows), W.shape[1]), x)
    rotation = None
    if rope_theta is not None:
        rotation = cosines_and_sines(length, d_head, rope_theta, x.dtype.name)

    def project(part: slice) -> Any:
        np.matmul(rows[part], W, out=qkv[part])
        longest = add_bias(qkv[part], bias, d_head, columns.queries, columns.keys, False)
        if rotation is not None:
            rotary_of_rows(qkv[part], *rotation, part.start, keys.stop)
        return longest

    squares = reduce(np.maximum, context.map_slices(project, len(rows)))
    query, key, value = views_of_heads(qkv, batch, length, d_head, *columns.heads)
    if columns.group > 1:
        key, _ = repeat_heads(key, columns.group)
        value, _ = repeat_heads(value, columns.group)
    y = context.empty((batch, length, columns.queries), x)
    cache = average_in_tiles(
        query,
        key,
        value,
        y,
        context,
        largest_score=math.sqrt(math.prod(squares)),
        causal=causal,
        window=window,
        store=store,
    )
    return y, (rows, biases, W, scale, cache, x.shape, columns, rotation)


def attention_heads_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Replaces `functional.scaled_dot_product_attention_backward` and `linear_backward`.

    Gradients: dx, then dW and, if there was a bias, db of query, key and value.
    """
    rows, biases, W, scale, averaged, x_shape, columns, rotation = cache
    (batch, length, _), context = x_shape, averaged[-1]
    dqkv = context.empty((len(rows), W.shape[1]), rows)
    dquery, dkey, dvalue = views_of_heads(dqkv, batch, length, columns.d_head, *columns.heads)
    if columns.group == 1:
        average_backward_in_tiles(dy, averaged, dquery, dkey, dvalue)
    else:
        dkeys = context.empty(dquery.shape, rows)
        dvalues = context.empty(dquery.shape, rows)
        average_backward_in_tiles(dy, averaged, dquery, dkeys, dvalues)
        for target, dheads in ((dkey, dkeys), (dvalue, dvalues)):
            grouped = dheads.reshape(batch, columns.kv_heads, columns.group, *dheads.shape[2:])
            np.add.reduce(grouped, axis=2, out=target)
    if rotation is not None:
        cosine, sine = rotation
        rotated_columns = columns.queries + columns.keys

        def rotate_back(part: slice) -> None:
            rotary_of_rows(dqkv[part], cosine, -sine, part.start, rotated_columns)

        context.map_slices(rotate_back, len(rows))
    W_back = np.multiply(W, _factors(columns, 1.0, W.dtype), out=context.empty(W.shape, W))
    dx = gradient_of_input(dqkv, W_back, context)
    dW, db = gradients_of_map(dqkv, rows, context)
    scales = _factors(columns, scale, W.dtype)
    dW *= scales
    db *= scales
    gradients = []
    for columns_of_map, bias in zip(columns.slices, biases, strict=True):
        gradients.append(dW[:, columns_of_map])
        if bias is not None:
            gradients.append(db[columns_of_map])
    return dx.reshape(x_shape), *gradients


def _loop(qkv, bias, d_head, queries, keys, rectify):  # type: ignore[no-untyped-def]
    longest, zero = np.zeros(2, qkv.dtype), qkv.dtype.type(0.0)
    for i in range(len(qkv)):
        row = qkv[i]
        for j in range(qkv.shape[1]):
            row[j] += bias[j]
        if rectify:
            for j in range(queries):
                row[j] = zero if row[j] < zero else row[j]  # NaN remains
        for kind in range(2):
            for first in range(kind * queries, queries + kind * keys, d_head):
                square, last = zero, first + d_head
                vectors = last - d_head % VECTOR
                for start in range(first, vectors, VECTOR):
                    for j in range(VECTOR):  # a number of times that LLVM knows
                        square += row[start + j] * row[start + j]
                for j in range(vectors, last):
                    square += row[j] * row[j]
                if not square <= longest[kind] and longest[kind] == longest[kind]:
                    longest[kind] = square  # NaN remains
    return longest[0], longest[1]


@leaf(_loop, result_without_numbers=(0.0, 0.0))
def add_bias(qkv: Array, bias: Array, d_head: int, queries: int, keys: int, rectify: bool) -> Any:
    """Replaces the sum with b in `functional.linear`, for queries, keys and values at once.

    Return the largest |q|^2 and |k|^2 of all heads, NaN if there is NaN. `queries` and `keys` are
    numbers of columns. With `rectify`, queries below 0 become 0.
    """
    longest = np.zeros(2, qkv.dtype)
    for chunk in chunks(len(qkv), qkv.shape[1]):
        projected = qkv[chunk]
        projected += bias
        query, key = projected[:, :queries], projected[:, queries : queries + keys]
        if rectify:
            np.maximum(query, zeros(queries, qkv.dtype), out=query)
        squares = longest_square(query, d_head), longest_square(key, d_head)
        np.maximum(longest, squares, out=longest)
    return longest[0].item(), longest[1].item()


def _rotate_loop(qkv, cosine, sine, first, columns):  # type: ignore[no-untyped-def]
    length, half = cosine.shape
    for i in range(len(qkv)):
        c, s = cosine[(first + i) % length], sine[(first + i) % length]
        for start in range(0, columns, 2 * half):
            a, b = qkv[i, start : start + half], qkv[i, start + half : start + 2 * half]
            for j in range(half):
                rotated = a[j] * c[j] - b[j] * s[j]
                b[j] = a[j] * s[j] + b[j] * c[j]
                a[j] = rotated


@leaf(_rotate_loop, FUSED)
def rotary_of_rows(qkv: Array, cosine: Array, sine: Array, first: int, columns: int) -> None:
    """Replaces `functional.rotary`, and with -sine for `functional.rotary_backward`.

    Rotate the first `columns` of some rows, of which the first is row number `first` of the batch.
    """
    length, half = cosine.shape
    for chunk in chunks(len(qkv), qkv.shape[1]):
        positions = np.arange(first + chunk.start, first + chunk.stop) % length
        c, s = cosine[positions][:, None], sine[positions][:, None]
        pairs = qkv[chunk, :columns].reshape(len(positions), -1, 2, half)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        rotated = a * c - b * s
        b *= c
        b += a * s
        a[...] = rotated


@lru_cache(maxsize=64)
def cosines_and_sines(length: int, d_head: int, theta: float, dtype: str) -> tuple[Array, Array]:
    """Return read-only cosines and sines of the angles at the first positions."""
    cosine, sine = rotations(np.arange(length), d_head, theta, dtype)
    return read_only(cosine), read_only(sine)


@lru_cache(maxsize=64)
def _factors(columns: Columns, scale: float, dtype: Any) -> Array:
    """Return a read-only factor for each column of query, key and value, with UNIT divided out."""
    factors = np.ones(columns.queries + 2 * columns.keys, dtype)
    queries, keys, _ = columns.slices
    factors[queries], factors[keys] = scale / UNIT, 1.0 / UNIT
    return read_only(factors)
