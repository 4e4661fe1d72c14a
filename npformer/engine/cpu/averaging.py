"""Y = softmax(Q K^T) V by head, a tile at a time: the core of attention and of synthesizers.

Let P be the weights: exponentials of the scores, from `exponentials`, divided by their row sums.
Then Y = P V, and with D = sum(P * (dY V^T)) over keys the gradients are

    dV = P^T dY        X = P * (dY V^T - D)        dQ = X K        dK = X^T Q.

In a saturated row, P is 1 for one key, and dY V^T - D cancels: D is the sum of the same numbers
from which it is subtracted, as in `functional.softmax_backward`. In a long sequence a row has
several tiles, and Y is a running average: a tile with the row sums l is added to the tiles so far,
with the sums L, as

    Y = Y L / (L + l) + (E / (L + l)) V.

In this case D is sum(dY * Y) over features: the same number, up to the rounding of Y.

Scores are computed again in the backward pass unless weights are stored, so memory need not grow
with the square of the length (Rabe and Staats, 2021, arXiv 2112.05682; Dao et al., 2022, arXiv
2205.14135).

Without this a training step with attention takes 55 % longer on S, 7 % on M, 33 % on X (`python -m
benchmarks kernels`).
"""

from itertools import chain
from typing import Any

import numpy as np

from npformer.core import Array, array_module, backend_of, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.exponentials import Exponentials, divisors
from npformer.engine.cpu.linear import accumulate_product
from npformer.engine.cpu.rows import ones
from npformer.engine.cpu.tiles import corner, slice_group, tiling_of
from npformer.functional.heads import split_heads

STORED = 255
"""Up to this length, `store=None` keeps the weights for the backward pass."""


def views_of_heads(
    rows: Array, batch: int, length: int, d_head: int, *slices_of_heads: slice
) -> list[Array]:
    """Return views of heads that are side by side, (batch, heads, length, d_head), by slice."""
    heads = rows.reshape(batch, length, rows.shape[1] // d_head, d_head).swapaxes(1, 2)
    return [heads[:, slice_of_heads] for slice_of_heads in slices_of_heads]


def average_in_tiles(
    query: Array,
    key: Array,
    value: Array,
    y: Array,
    context: EngineContext,
    *,
    largest_score: float,
    bias: Array | None = None,
    causal: bool = False,
    window: int | None = None,
    store: bool | None = None,
) -> Any:
    """Replaces `functional.average`, with scores that are computed here, in tiles.

    Write softmax(query key^T + bias) value into `y`, and return a cache. The mask is that of
    `context`.

    Parameters
    ----------
    query, value : array, shape (batch, heads, length, d_head)
        With any strides. Queries are already multiplied by the scale of the scores and by `UNIT`.
    key : array, shape (batch or 1, heads, length, d_head)
        Batch 1 means one set of keys for all samples.
    y : array, shape (batch, length, heads d_head), C-contiguous
        The heads side by side.
    largest_score : float
        An upper bound of the scores: the norm of the longest query times that of the longest key.
    bias : array, shape (heads, length), optional
        Added to the scores of each key, in the units of e^x.
    causal, window
        As in `functional.average`.
    store : bool, optional
        Whether to keep the weights for the backward pass. None: up to length `STORED`. Sequences
        longer than a tile never keep them: their number grows with the square of the length.
    """
    (batch, n_heads, length, _), mask = value.shape, context.mask
    if mask is not None:
        backend_of(query=query, mask=mask)
        checks.mask("mask", mask, (batch, length))
        # Padding may contain anything, NaN too, and 0 * NaN would reach the other tokens.
        is_token = mask[:, None, :, None]
        value = np.where(is_token, value, 0.0)
        if key.shape[0] == len(mask):
            key = np.where(is_token, key, 0.0)
    tiling = tiling_of(batch, n_heads, length, causal, window)
    exponentials = Exponentials(query, key, largest_score, bias, mask, tiling, context)
    stores = length <= STORED if store is None else store
    if context.keep and stores and tiling.whole_rows:
        exponentials.stored = context.empty((batch, n_heads, length, length), query)
    out = y.reshape(batch, length, n_heads, y.shape[-1] // n_heads).swapaxes(1, 2)

    def compute(part: slice) -> None:
        (scratch,) = tiling.memory(1, query)
        for tile in tiling.tiles(tiling.groups[part], query):
            group, (queries, keys, _, first, _) = tile
            target = out[*group, queries]
            totals = None if first else exponentials.totals[*group, queries]
            p, sums = exponentials.weights(tile, scratch, totals)
            if totals is not None:
                target *= totals / divisors(sums)
            if not tiling.whole_rows:
                exponentials.totals[*group, queries] = sums
            accumulate_product(p, value[*group, keys], target, first, context)

    context.map_slices(compute, len(tiling.groups))
    return exponentials, value, bias is not None, y, context


def average_backward_in_tiles(
    dy: Array, cache: Any, dquery: Array, dkey: Array, dvalue: Array
) -> Array | None:
    """Replaces `functional.average_backward`: write dquery, dkey and dvalue, and return dbias.

    dquery and dkey come out `UNIT` times too large, because EXP(s) = e^(s / UNIT). The caller
    divides by UNIT together with the scale of the queries. Keys of batch 1 receive the sum over the
    batch. The result is None if there is no bias.
    """
    exponentials, value, has_bias, y, context = cache
    query, key, tiling = exponentials.query, exponentials.key, exponentials.tiling
    batch, n_heads, length, _ = query.shape
    shared = key.shape[0] != batch
    dy = array_module(dy).ascontiguousarray(dy)
    dout, out = split_heads(dy, n_heads), split_heads(y, n_heads)
    dbias = np.zeros((n_heads, length), query.dtype) if has_bias else None
    if shared:
        dkey[...] = 0.0
    # A single thread handles all samples that add to the same sum.
    units = [[group] for group in tiling.groups]
    if shared or has_bias:
        units = tiling.groups_by_heads()

    def compute(part: slice) -> None:
        x_scratch, p_scratch = tiling.memory(2, query)
        for tile in tiling.tiles(chain.from_iterable(units[part]), query):
            group, (queries, keys, _, first_of_queries, first) = tile
            q, dy_rows = (a[*group, queries] for a in (query, dout))
            v = value[*group, keys]
            x = corner(x_scratch, (*q.shape[:-1], v.shape[-2]))
            np.matmul(dy_rows, v.swapaxes(-1, -2), out=x)
            along = None
            if not tiling.whole_rows:
                along = np.vecdot(dy_rows, out[*group, queries])[..., None]
            p = exponentials.gradients(tile, p_scratch, x, along)
            accumulate_product(p.swapaxes(-1, -2), dy_rows, dvalue[*group, keys], first, context)
            k = slice_group(key, group)[:, :, keys]
            accumulate_product(x, k, dquery[*group, queries], first_of_queries, context)
            if not shared:
                accumulate_product(x.swapaxes(-1, -2), q, dkey[*group, keys], first, context)
            else:
                dkey[0, group[1], keys] += (x.swapaxes(-1, -2) @ q).sum(axis=0)
            if dbias is not None:
                dkey_sums = np.matmul(ones(x.shape[-2], x.dtype), x)  # [samples, heads, keys]
                dbias[group[1], keys] += dkey_sums.sum(axis=0)

    context.map_slices(compute, len(units))
    return dbias
