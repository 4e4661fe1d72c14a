"""Y = softmax(Q K^T) V by head, a tile at a time: the core of attention and of synthesizers.

The plain version passes over the (length, length) weights seven times, this one twice. Let E be the
exponentials of the scores and w the weights of the keys, both from `exponentials`. Then

    Y = (E w V) / l        l = E w

divides the rows of Y, which are shorter than those of E. With g = dY / l and D = sum(g * Y) over
features, the gradients are

    dV = w E^T g        X = E * (g V^T - D)        dQ = X (w K)        dK = w X^T Q.

Scores are computed again in the backward pass unless they are stored, so memory need not grow with
the square of the length (Rabe and Staats, 2021, arXiv 2112.05682; Dao et al., 2022, arXiv
2205.14135).

Without this a training step with attention takes 24 % longer on S and 17 % on X; on M the
difference is within the noise (`python -m benchmarks kernels`).
"""

from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from npformer.core import Array, backend_of, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.exponentials import Exponentials
from npformer.engine.cpu.rows import ones
from npformer.engine.cpu.tiles import Tiling, corner, of_group
from npformer.functional.heads import split_heads

STORED = 512
"""Up to this length, `store=None` keeps the exponentials for the backward pass."""


def parts_by_head(
    columns: Array, batch: int, length: int, n_heads: int, parts: int
) -> tuple[Array, ...]:
    """Split columns into `parts` projections, each a view (batch, heads, length, d_head)."""
    d_head = columns.shape[1] // (parts * n_heads)
    by_head = columns.reshape(batch, length, parts, n_heads, d_head).transpose(2, 0, 3, 1, 4)
    return tuple(by_head[i] for i in range(parts))


def average(
    query: Array,
    key: Array,
    value: Array,
    y: Array,
    *,
    longest: float,
    bias: Array | None = None,
    mask: Array | None = None,
    causal: bool = False,
    store: bool | None = None,
    context: EngineContext,
) -> Any:
    """Write softmax(query key^T + bias) value into `y`, and return a cache.

    Parameters
    ----------
    query, value : array, shape (batch, heads, length, d_head)
        With any strides. Queries are already multiplied by the scale of the scores and by `UNIT`.
    key : array, shape (batch or 1, heads, length, d_head)
        Batch 1 means one set of keys for all samples.
    y : array, shape (batch, length, heads d_head), C-contiguous
        The heads side by side.
    longest : float
        No score is larger: the norm of the longest query times that of the longest key.
    bias : array, shape (heads, length), optional
        Added to the scores of each key, in the units of e^x.
    mask : bool array, shape (batch, length), optional
    store : bool, optional
        Whether to keep the exponentials for the backward pass. None: up to length `STORED`.
    """
    batch, n_heads, length, d_value = value.shape
    if mask is not None:
        backend_of(query=query, mask=mask)
        checks.mask("mask", mask, (batch, length))
        # Padding may hold anything, NaN too, and 0 * NaN would reach the tokens that are kept.
        kept = mask[:, None, :, None]
        value = np.where(kept, value, 0.0)
        if key.shape[0] == len(mask):
            key = np.where(kept, key, 0.0)
    tiling = Tiling(batch, n_heads, length, causal)
    exponentials = Exponentials(query, key, longest, bias, mask, tiling, context)
    weight = exponentials.weight
    if context.keep and (length <= STORED if store is None else store):
        exponentials.stored = context.empty((batch, n_heads, length, length), query)
    weighted = value if weight is None else value * weight.swapaxes(-1, -2)
    out = split_heads(y, n_heads)
    side = tiling.largest[-1]
    totals = context.empty((batch, length, n_heads), query)  # l, the row sums
    totals_by_head = split_heads(totals, n_heads)

    def compute(part: slice) -> None:
        scratch = tiling.scratch(context, query) if exponentials.stored is None else None
        partial = np.empty((side if length > side else 0, d_value), query.dtype)
        for tile in tiling.tiles(tiling.groups[part]):
            group, queries, keys = tile
            e = exponentials.of(tile, scratch)
            sums = exponentials.row_sums(e, group, keys)
            v = weighted[group][..., keys, :]
            target, total = (x[group][..., queries, :] for x in (out, totals_by_head))
            if keys.start == 0:
                np.matmul(e, v, out=target)
                total[...] = sums
            else:
                target += np.matmul(e, v, out=partial[: e.shape[-2]])
                total += sums

    context.in_parts(compute, len(tiling.groups))
    if mask is not None:
        totals[totals == 0.0] = np.inf  # no visible key: the result is 0, not 0 / 0
    inverse = np.divide(1.0, totals, out=totals)
    y *= _over_features(inverse, y, context)
    return exponentials, value, bias is not None, y, inverse, context


def average_backward(
    dy: Array, cache: Any, dquery: Array, dkey: Array, dvalue: Array
) -> Array | None:
    """Write the gradients of `average` into dquery, dkey and dvalue, and return that of the bias.

    dquery and dkey come out `UNIT` times too large, because EXP(s) = e^(s / UNIT). The caller
    divides by UNIT together with the scale of the queries. Keys of batch 1 receive the sum over the
    batch. The result is None if there is no bias.
    """
    exponentials, value, biased, y, inverse, context = cache
    query, key, weight = exponentials.query, exponentials.key, exponentials.weight
    tiling = exponentials.tiling
    batch, n_heads, length, _ = query.shape
    shared = key.shape[0] != batch
    g = _over_features(inverse, y, context)
    g *= dy
    along = np.multiply(g, y, out=context.empty(y.shape, y)).reshape(-1, y.shape[-1])
    along = along @ _places(n_heads, y.shape[-1], y.dtype).T  # D: [batch length, heads]
    along = split_heads(along.reshape(batch, length, n_heads), n_heads)
    g = split_heads(g, n_heads)
    w_column = None if weight is None else weight.swapaxes(-1, -2)  # [.., length, 1]
    weighted_key = key if w_column is None else key * w_column
    dbias = np.zeros((n_heads, length), query.dtype) if biased else None
    if shared:
        dkey[...] = 0.0
    # Samples that add to the same sum are handled by one thread.
    one_by_one = [[group] for group in tiling.groups]
    units = tiling.groups_by_heads() if shared or biased else one_by_one

    def compute(part: slice) -> None:
        x_scratch = tiling.scratch(context, query)
        e_scratch = tiling.scratch(context, query) if exponentials.stored is None else None
        for tile in tiling.tiles(chain.from_iterable(units[part])):
            group, queries, keys = tile
            w = None if w_column is None else of_group(w_column, group)[..., keys, :]
            q, g_rows, d_rows = (a[group][..., queries, :] for a in (query, g, along))
            first = queries.start == 0 or tiling.on_diagonal(tile)
            e = exponentials.again(tile, e_scratch)
            x = corner(x_scratch, e.shape)
            np.matmul(g_rows, value[group][..., keys, :].swapaxes(-1, -2), out=x)
            x -= d_rows
            x *= e
            _accumulate(e.swapaxes(-1, -2), g_rows, dvalue[group][..., keys, :], first)
            k = of_group(weighted_key, group)[..., keys, :]
            _accumulate(x, k, dquery[group][..., queries, :], keys.start == 0)
            if not shared:
                _accumulate(x.swapaxes(-1, -2), q, dkey[group][..., keys, :], first)
            else:
                dk = x.swapaxes(-1, -2) @ q
                if w is not None:
                    dk *= w
                dkey[0, group[1], keys] += dk.sum(axis=0)
            if dbias is not None:
                db = np.matmul(ones(x.shape[-2], x.dtype), x)  # [samples, heads, keys]
                if w is not None:
                    db *= w[..., 0]
                dbias[group[1], keys] += db.sum(axis=0)

    context.in_parts(compute, len(units))
    if w_column is not None:
        dvalue *= w_column
        if not shared:
            dkey *= w_column
    return dbias


def _accumulate(a: Array, b: Array, target: Array, first: bool) -> None:
    """target = a @ b, or target += a @ b."""
    if first:
        np.matmul(a, b, out=target)
    else:
        target += a @ b


@lru_cache(maxsize=64)
def _places(n_heads: int, d: int, dtype: Any) -> Array:
    """Return a read-only (heads, d) array: 1 where the feature belongs to the head, else 0."""
    places = np.repeat(np.eye(n_heads, dtype=dtype), d // n_heads, axis=1)
    places.flags.writeable = False
    return places


def _over_features(of_heads: Array, y: Array, context: EngineContext) -> Array:
    """Repeat (batch, length, heads) over the features of each head, up to the shape of y.

    A product with zeros and ones writes whole rows, which is faster than broadcasting in steps of
    d_head.
    """
    places = _places(of_heads.shape[-1], y.shape[-1], y.dtype)
    out = context.empty(y.shape, y)
    np.matmul(of_heads.reshape(-1, len(places)), places, out=out.reshape(-1, y.shape[-1]))
    return out
