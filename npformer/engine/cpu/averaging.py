"""Y = softmax(Q K^T) V by head, a tile at a time: the core of attention and of synthesizers.

The plain version takes seven trips through the (length, length) weights. Four ideas leave two, and
none of them changes what is computed:

- **No maximum, where it is proven needless.** softmax subtracts it so that exp cannot overflow. But
  |q . k| <= |q| |k|, and the longest query times the longest key, found in one look at the short
  arrays, bounds every score. Below `SAFE` nothing can overflow or vanish. Above, row maxima are
  subtracted as usual.
- **Weights of keys instead of terms of scores.** exp(s + b) = exp(s) exp(b): a bias of a key, and a
  padding mask, which is the bias -inf, become factors w on the rows of V and in the row sums.
- **Division last.** Y = (E w V) / l with l = E w: the rows of Y are divided, not those of E.
- **2^x for e^x** where the processor has it vectorised, ln 2 hidden in the scale of Q.

With g = dY / l and D = sum(g * Y) over features, the gradients are

    dV = w E^T g        X = E * (g V^T - D)        dQ = X (w K)        dK = w X^T Q.

Scores are computed again in the backward pass unless they are stored, so memory need not grow with
the square of the length (Rabe and Staats, 2021, arXiv 2112.05682; Dao et al., 2022, arXiv
2205.14135).

Without it a training step with attention takes 24 % longer on S, 17 % on X, and no longer than
can be told from noise on M (`python -m benchmarks kernels`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from npformer.core import Array, backend_of, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import EXP, UNIT, ones
from npformer.functional.heads import split_heads

SAFE = 64.0
"""Scores from -SAFE to SAFE, in powers of 2, need no maximum. Float32 reaches from 2^-126 to 2^128:
half of that is left to the values that 2^64 is multiplied with, to sums, and to small gradients,
which row sums divide."""

TILE = 512
"""Queries and keys of a tile of a long sequence: 512^2 float32 numbers are 1 MiB."""

SCORES = 1 << 18
"""Scores at once of short sequences: samples and heads are taken together up to so many."""

STORED = 512
"""Up to this length, `store=None` keeps the exponentials for the backward pass."""


Group = tuple[slice, slice]
"""Samples, and heads, that are computed at once."""


@dataclass
class Heads:
    """What one call needs, all as views of shape (batch, heads, length, d_head).

    Attributes
    ----------
    query, key, value : array
        Scores are query @ key^T, in units of `EXP`. Keys may have batch 1: one set for all.
    weight : array, shape (batch or 1, heads or 1, 1, key_length), or None
        w: what each key's exponential is multiplied with.
    shift : array, shape (batch, heads, length, 1), or None
        Subtracted from the scores: row maxima where they are needed.
    bias : array, shape (heads, 1, key_length), or None
        Added to the scores where `weight` would overflow.
    mask : bool array, shape (batch, 1, 1, key_length), or None
    causal : bool
    biased : bool
        Whether scores have a bias, here or in `weight`.
    """

    query: Array
    key: Array
    value: Array
    weight: Array | None
    shift: Array | None
    bias: Array | None
    mask: Array | None
    causal: bool
    biased: bool


def longest_squares(rows: Array, d_head: int, parts: int = 1) -> Array:
    """Return the largest |q|^2 of the heads' parts of some rows; NaN if there is NaN.

    Parameters
    ----------
    rows : array, shape (n, parts heads d_head)
    d_head : int
    parts : int
        Projections that lie side by side.

    Returns
    -------
    squares : array, shape (parts,)

    Notes
    -----
    Asked for while the rows are in the cache: a second trip through memory would cost more.
    """
    if not len(rows):
        return np.zeros(parts, rows.dtype)
    squares = (rows * rows).reshape(-1, d_head) @ ones(d_head, rows.dtype)
    by_head = squares.reshape(len(rows), -1).max(axis=0)  # over rows first: long ones, one by one
    return by_head.reshape(parts, -1).max(axis=1)


def parts_by_head(
    columns: Array, batch: int, length: int, n_heads: int, parts: int
) -> tuple[Array, ...]:
    """View (batch length, parts d), projections side by side, as (batch, heads, length, d_head)."""
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
    """Write softmax(query key^T + bias) value into `y`, the heads side by side.

    Parameters
    ----------
    query, value : array, shape (batch, heads, length, d_head)
        Views with any strides. Queries hold the scale of the scores, times `UNIT`.
    key : array, shape (batch or 1, heads, length, d_head)
    y : array, shape (batch, length, heads d_head), C-contiguous
        Written to.
    longest : float
        The longest query times the longest key, or more: no score is larger.
    bias : array, shape (heads, length), optional
        Added to the scores of each key, in the units of e^x.
    mask : bool array, shape (batch, length), optional
        True = keep.
    causal : bool
        Query i sees the keys 0 to i only.
    store : bool, optional
        Keep the exponentials for the backward pass; None: up to length `STORED`.
    context : EngineContext
        Lends the memory.

    Returns
    -------
    cache : opaque
        For `average_backward`.
    """
    if mask is not None:
        backend_of(query=query, mask=mask)
        checks.mask("mask", mask, (query.shape[0], query.shape[2]))
        # Padding may hold anything, NaN too, and 0 * NaN would reach the tokens that are kept.
        kept = mask[:, None, :, None]
        value = np.where(kept, value, 0.0)
        if key.shape[0] == len(mask):
            key = np.where(kept, key, 0.0)
    heads = _prepare(query, key, value, longest, bias, mask, causal, context)
    batch, n_heads, length, _ = query.shape
    if store is None:
        store = length <= STORED
    store = store and context.keep
    stored = context.empty((batch, n_heads, length, length), query) if store else None
    weighted = value if heads.weight is None else value * heads.weight.swapaxes(-1, -2)
    out = split_heads(y, n_heads)
    totals = context.empty((batch, length, n_heads), query)  # row sums
    totals_by_head = split_heads(totals, n_heads)
    groups = list(_groups(heads))

    def compute(part: slice) -> None:
        scratch = None if store else _scratch(heads, context)
        partial = np.empty((TILE, value.shape[-1]), query.dtype) if length > TILE else None
        for some, rows, columns in _walk(heads, groups[part]):
            e = _exponentials(heads, some, rows, columns, stored, scratch)
            sums = _row_sums(e, heads.weight, some, columns)
            v = weighted[some][..., columns, :]
            target, total = (x[some][..., rows, :] for x in (out, totals_by_head))
            if columns.start == 0:
                np.matmul(e, v, out=target)
                total[...] = sums
            else:
                assert partial is not None
                target += np.matmul(e, v, out=partial[: e.shape[-2]])
                total += sums

    context.in_parts(compute, len(groups))
    if mask is not None:
        totals[totals == 0.0] = np.inf  # nothing to see: 0, not 0 / 0
    inverse = np.divide(1.0, totals, out=totals)
    y *= _over_features(inverse, y, context)
    return heads, y, inverse, stored, context


def average_backward(
    dy: Array, cache: Any, dquery: Array, dkey: Array, dvalue: Array
) -> Array | None:
    """Write the gradients of `average` into dquery, dkey and dvalue.

    Parameters
    ----------
    dy : array, shape (batch, length, heads d_head)
        Gradient of the loss with respect to `y`.
    cache : opaque
        From `average`.
    dquery, dkey, dvalue : array
        In the shapes of query, key and value; written to. dquery and dkey are `UNIT` times the
        gradients, for EXP(s) = e^(s / UNIT): whoever scaled the queries takes it out with the
        scale. Keys that serve a whole batch receive the sum over it.

    Returns
    -------
    dbias : array, shape (heads, length), or None
        Gradient of the bias, if there was one.
    """
    heads, y, inverse, stored, context = cache
    query, key, value, weight = heads.query, heads.key, heads.value, heads.weight
    batch, n_heads, length, _ = query.shape
    shared = key.shape[0] != batch
    g = _over_features(inverse, y, context)
    g *= dy
    along = np.multiply(g, y, out=context.empty(y.shape, y)).reshape(-1, y.shape[-1])
    along = along @ _places(n_heads, y.shape[-1], y.dtype).T  # D: [batch length, heads]
    along = split_heads(along.reshape(batch, length, n_heads), n_heads)
    g = split_heads(g, n_heads)
    w_column = None if weight is None else weight.swapaxes(-1, -2)  # [.., Lk, 1]
    weighted_key = key if w_column is None else key * w_column
    dbias = np.zeros((n_heads, length), query.dtype) if heads.biased else None
    if shared:
        dkey[...] = 0.0
    units = [[group] for group in _groups(heads)]
    if shared or heads.biased:  # what samples add to the same sum is added in one thread
        units = _by_head(units)

    def compute(part: slice) -> None:
        x_scratch = _scratch(heads, context)
        e_scratch = None if stored is not None else _scratch(heads, context)
        for some, rows, columns in _walk(heads, chain.from_iterable(units[part])):
            w = None if w_column is None else w_column[_within(some, w_column)][..., columns, :]
            q, g_rows, d_rows = (a[some][..., rows, :] for a in (query, g, along))
            first = rows.start == 0 or (heads.causal and rows.start == columns.start)
            e = _exponentials(heads, some, rows, columns, stored, e_scratch, again=True)
            x = _like(x_scratch, e)
            np.matmul(g_rows, value[some][..., columns, :].swapaxes(-1, -2), out=x)
            x -= d_rows
            x *= e
            _accumulate(e.swapaxes(-1, -2), g_rows, dvalue[some][..., columns, :], first)
            keys = weighted_key[_within(some, weighted_key)][..., columns, :]
            _accumulate(x, keys, dquery[some][..., rows, :], columns.start == 0)
            if not shared:
                _accumulate(x.swapaxes(-1, -2), q, dkey[some][..., columns, :], first)
            else:
                dk = x.swapaxes(-1, -2) @ q
                if w is not None:
                    dk *= w
                dkey[0, some[1], columns] += dk.sum(axis=0)
            if dbias is not None:
                db = np.matmul(ones(x.shape[-2], x.dtype), x)  # [samples, heads, Lk]
                if w is not None:
                    db *= w[..., 0]
                dbias[some[1], columns] += db.sum(axis=0)

    context.in_parts(compute, len(units))
    if w_column is not None:
        dvalue *= w_column
        if not shared:
            dkey *= w_column
    return dbias


def _prepare(
    query: Array,
    key: Array,
    value: Array,
    longest: float,
    bias: Array | None,
    mask: Array | None,
    causal: bool,
    context: EngineContext,
) -> Heads:
    """Choose between weights of keys without a maximum, and a bias with row maxima."""
    padding = None if mask is None else mask[:, None, None, :]
    if bias is not None:
        longest += float(np.abs(bias).max(initial=0.0)) * UNIT
    if longest <= SAFE:  # not so for NaN
        weight = None if padding is None else padding.astype(query.dtype)
        if bias is not None:
            factor = np.exp(bias)[None, :, None, :]
            weight = factor if weight is None else factor * weight
        return Heads(query, key, value, weight, None, None, padding, causal, bias is not None)
    weight = None if padding is None else padding.astype(query.dtype)
    row_bias = None if bias is None else (bias * UNIT)[:, None, :]
    heads = Heads(query, key, value, weight, None, row_bias, padding, causal, bias is not None)
    heads.shift = _row_maxima(heads, context)
    return heads


def _row_maxima(heads: Heads, context: EngineContext) -> Array:
    """Return the largest score that each query may see; 0 where it may see none."""
    batch, n_heads, length, _ = heads.query.shape
    top = np.full((batch, n_heads, length, 1), -np.inf, heads.query.dtype)
    groups = list(_groups(heads))

    def compute(part: slice) -> None:
        for some, rows, columns in _walk(heads, groups[part]):
            s = _scores(heads, some, rows, columns, None)
            if heads.mask is not None:
                masked = ~heads.mask[some[0]][..., columns]
                np.copyto(s, -np.inf, where=masked)
            if heads.causal and rows.start == columns.start:
                s[..., ~_triangle(s.shape[-1], bool)] = -np.inf
            row = top[some][..., rows, :]
            np.maximum(row, s.max(axis=-1, keepdims=True), out=row)

    context.in_parts(compute, len(groups))
    top[np.isneginf(top)] = 0.0
    return top


def _scores(heads: Heads, some: Group, rows: slice, columns: slice, out: Array | None) -> Array:
    key = heads.key[_within(some, heads.key)][..., columns, :]
    s = np.matmul(heads.query[some][..., rows, :], key.swapaxes(-1, -2), out=out)
    if heads.bias is not None:
        s += heads.bias[some[1]][..., columns]
    return s


def _exponentials(
    heads: Heads,
    some: Group,
    rows: slice,
    columns: slice,
    stored: Array | None,
    scratch: Array | None,
    again: bool = False,
) -> Array:
    """Return EXP(scores) of a tile: from where it is stored, or computed."""
    if stored is not None:
        e = stored[some][..., rows, columns]
        if again:
            return e
    else:
        assert scratch is not None
        e = scratch[: _size(some[0]), : _size(some[1]), : _size(rows), : _size(columns)]
    _scores(heads, some, rows, columns, e)
    if heads.shift is not None:
        e -= heads.shift[some][..., rows, :]
        if heads.mask is not None:  # masked scores may lie above the maximum of the others
            np.minimum(e, 0.0, out=e)
        if heads.causal and rows.start == columns.start:
            np.minimum(e, 0.0, out=e)
    EXP(e, out=e)
    if heads.causal and rows.start == columns.start:
        e *= _triangle(e.shape[-1], e.dtype)
    return e


def _row_sums(e: Array, weight: Array | None, some: Group, columns: slice) -> Array:
    if weight is None:
        return (e @ ones(e.shape[-1], e.dtype))[..., None]
    w = weight[_within(some, weight)][..., columns]
    return e @ w.swapaxes(-1, -2)


def _accumulate(a: Array, b: Array, target: Array, first: bool) -> None:
    """target = a @ b, or target += a @ b."""
    if first:
        np.matmul(a, b, out=target)
    else:
        target += a @ b


@lru_cache(maxsize=64)
def _places(n_heads: int, d: int, dtype: Any) -> Array:
    """Return (heads, d) with 1 where a feature belongs to a head, not to be written to."""
    places = np.repeat(np.eye(n_heads, dtype=dtype), d // n_heads, axis=1)
    places.flags.writeable = False
    return places


def _over_features(of_heads: Array, near: Array, context: EngineContext) -> Array:
    """Return (batch, length, heads) repeated over each head's features, in lent memory.

    As a product with zeros and ones: one long row after another, where broadcasting would go in
    steps of d_head.
    """
    places = _places(of_heads.shape[-1], near.shape[-1], near.dtype)
    out = context.empty(near.shape, near)
    rows = of_heads.reshape(-1, len(places))
    np.matmul(rows, places, out=out.reshape(-1, near.shape[-1]))
    return out


def _triangle(n: int, dtype: Any) -> Array:
    return np.tri(n, dtype=dtype)


def _size(part: slice) -> int:
    return int(part.stop - part.start)


def _like(scratch: Array, e: Array) -> Array:
    n, h, r, c = e.shape
    return scratch[:n, :h, :r, :c]


def _within(some: Group, x: Array) -> Group:
    """Return `some` for an array that may have one sample, or one head, for all."""
    whole = slice(None)
    return (whole if x.shape[0] == 1 else some[0], whole if x.shape[1] == 1 else some[1])


def _heads_at_once(heads: Heads) -> int:
    n_heads, length = heads.query.shape[1:3]
    size = min(length, TILE)
    return n_heads if n_heads * size * size <= SCORES else 1


def _samples(heads: Heads) -> int:
    batch, _, length, _ = heads.query.shape
    size = min(length, TILE)
    of_sample = _heads_at_once(heads) * size * size
    return min(batch, max(1, SCORES // max(of_sample, 1))) or 1


def _scratch(heads: Heads, context: EngineContext) -> Array:
    size = min(heads.query.shape[2], TILE)
    return context.empty((_samples(heads), _heads_at_once(heads), size, size), heads.query)


def _groups(heads: Heads) -> Iterator[Group]:
    """Yield samples and heads that are computed together."""
    batch, n_heads, _, _ = heads.query.shape
    n, h = _samples(heads), _heads_at_once(heads)
    for b in range(0, batch, n):
        for head in range(0, n_heads, h):
            yield slice(b, min(b + n, batch)), slice(head, head + h)


def _walk(heads: Heads, groups: Iterable[Group]) -> Iterator[tuple[Group, slice, slice]]:
    """Yield (group, queries, keys) of every tile that is not wholly in the future."""
    length = heads.query.shape[2]
    for some in groups:
        for rows in _tiles(length):
            for columns in _tiles(length, rows.stop if heads.causal else length):
                yield some, rows, columns


def _by_head(units: list[list[Group]]) -> list[list[Group]]:
    """Join lists of groups whose heads are the same, in order."""
    found: dict[int, list[Group]] = {}
    for unit in units:
        for samples, heads in unit:
            found.setdefault(heads.start, []).append((samples, heads))
    return list(found.values())


def _tiles(length: int, until: int | None = None) -> Iterator[slice]:
    """Yield slices of `TILE` positions that begin before `until`."""
    for start in range(0, length if until is None else until, TILE):
        yield slice(start, min(start + TILE, length))
