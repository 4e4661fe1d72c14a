"""Exponentials of scores, a tile at a time, and the weights: exponentials over their row sums.

Three ideas, none of which changes the result:

- **Maxima only where they are needed.** softmax subtracts row maxima so that exp cannot overflow.
  But |q . k| <= |q| |k|: the norm of the longest query times that of the longest key bounds every
  score, and needs one pass over short arrays. If the bound is at most `SAFE`, exponentials and
  their row sums are far from both ends of float32, and weights are as exact as with maxima.
  Otherwise row maxima are subtracted as usual.
- **Exponentials are divided by their row sums first.** They may be as large or as small as
  2^(+-`SAFE`), and values or gradients may be tiny or huge as well: a product of the two could
  overflow or vanish, where the average itself does neither. Weights are at most 1.
- **2^x instead of e^x** where NumPy has it vectorised; 1 / ln 2 goes into the scale of Q.
"""

from typing import Any

import numpy as np

from npformer.core import Array, array_module
from npformer.engine.context import EngineContext
from npformer.engine.cpu.loops import exp, exp2
from npformer.engine.cpu.rows import EXP, UNIT, leaf, ones
from npformer.engine.cpu.tiles import Tile, Tiling, band_of, corner, slice_group

SAFE = 64.0
"""Scores from -SAFE to SAFE, as exponents of 2, need no maximum. Float32 reaches from 2^-126 to
2^128, so that row sums and 1 / row sums lie well inside, at any length."""

power = exp if UNIT == 1.0 else exp2
"""`EXP` of a single number, for loops."""


class Exponentials:
    """E = EXP(query key^T + bias - shift) of one call, 0 where a query may not see a key.

    Parameters
    ----------
    query, key, bias, mask
        As `average_in_tiles` takes them.
    largest_score : float
        An upper bound of the scores, before the bias is added.

    Attributes
    ----------
    weight : array, shape (batch or 1, heads or 1, 1, length), or None
        The factor of each key's exponentials: its mask, and e^bias if that cannot overflow.
    bias : array, shape (heads, 1, length), or None
        Added to the scores, if `weight` might overflow.
    shift : array, shape (batch, heads, length, 1), or None
        Row maxima, if they are needed.
    stored : array, shape (batch, heads, length, length), or None
        The weights, if they are stored for the backward pass; only if a tile has whole rows.
    totals : array, shape (batch, heads, length, 1)
        Row sums of E, if no tile has whole rows: in the forward pass over the keys so far, in the
        backward pass over all keys.
    """

    stored: Array | None = None

    def __init__(
        self,
        query: Array,
        key: Array,
        largest_score: float,
        bias: Array | None,
        mask: Array | None,
        tiling: Tiling,
        context: EngineContext,
    ) -> None:
        self.query, self.key, self.tiling = query, key, tiling
        self.mask = None if mask is None else mask[:, None, None, :]
        self.weight = None if self.mask is None else self.mask.astype(query.dtype)
        self.bias: Array | None = None
        self.shift: Array | None = None
        if not tiling.whole_rows:
            self.totals = context.empty((*query.shape[:-1], 1), query)
        if bias is not None:
            largest_score += float(np.abs(bias).max(initial=0.0)) * UNIT
        if largest_score <= SAFE:  # False for NaN
            if bias is not None:
                factor = np.exp(bias)[None, :, None, :]
                self.weight = factor if self.weight is None else factor * self.weight
        else:
            self.bias = None if bias is None else (bias * UNIT)[:, None, :]
            self.shift = self._row_maxima(context)

    def weights(self, tile: Tile, scratch: Array, totals: Array | None) -> tuple[Array, Array]:
        """Return a tile of weights, in `stored` or in scratch memory, and the sums that divide it.

        The sums are those of the rows of E, together with `totals`, those of earlier tiles.
        """
        e = self._scores(tile, scratch)
        sums = np.empty((*e.shape[:-1], 1), e.dtype)
        exponentiate(e, *self._settings(tile), totals, sums)
        return e, sums

    def gradients(self, tile: Tile, scratch: Array, x: Array, along: Array | None) -> Array:
        """Return a tile of weights again; x, which is dy value^T, becomes the scores' gradient.

        `along` is sum(dy * y) over features, if no tile has whole rows.
        """
        group, (queries, keys, *_) = tile
        if self.stored is not None:
            p = self.stored[*group, queries, keys]
            softmax_backward_of_tile(p, x)
            return p
        s = self._scores(tile, scratch)
        totals = None if along is None else self.totals[*group, queries]
        softmax_backward_of_scores(s, x, *self._settings(tile), totals, along)
        return s

    def _settings(self, tile: Tile) -> tuple[Any, ...]:
        """Return shift, weight, masked and band of a tile, as the leaves take them."""
        group, (queries, keys, band, _, _) = tile
        shift = None if self.shift is None else self.shift[*group, queries]
        weight = None
        if self.weight is not None:
            xp = array_module(self.weight)
            weight = xp.ascontiguousarray(slice_group(self.weight, group)[..., keys])
        return shift, weight, self.mask is not None, band

    def _scores(self, tile: Tile, scratch: Array) -> Array:
        group, (queries, keys, _, _, _) = tile
        query, key = self.query[*group, queries], slice_group(self.key, group)[:, :, keys]
        if self.stored is None:
            s = corner(scratch, (*query.shape[:-1], key.shape[-2]))
        else:
            s = self.stored[*group, queries, keys]
        np.matmul(query, key.swapaxes(-1, -2), out=s)
        if self.bias is not None:
            s += self.bias[group[1]][..., keys]
        return s

    def _row_maxima(self, context: EngineContext) -> Array:
        """Return the largest score that each query may see; 0 where it may see none."""
        top = np.full((*self.query.shape[:-1], 1), -np.inf, self.query.dtype)
        groups = self.tiling.groups

        def compute(part: slice) -> None:
            (scratch,) = self.tiling.memory(1, self.query)
            for tile in self.tiling.tiles(groups[part], self.query):
                group, (queries, keys, band, *_) = tile
                s = self._scores(tile, scratch)
                if self.mask is not None:
                    np.copyto(s, -np.inf, where=~self.mask[group[0]][..., keys])
                if band is not None:
                    s[..., ~band_of(*s.shape[-2:], *band)] = -np.inf
                row = top[*group, queries]
                np.maximum(row, s.max(axis=-1, keepdims=True), out=row)

        context.map_slices(compute, len(groups))
        top[np.isneginf(top)] = 0.0
        return top


def _loop(e, shift, weight, masked, band, totals, sums):  # type: ignore[no-untyped-def]
    samples, heads, queries, keys = e.shape
    for sample in range(samples):
        for head in range(heads):
            if weight is not None:
                factor = weight[sample % len(weight), head % weight.shape[1], 0]
            for i in range(queries):
                row = e[sample, head, i]
                first, stop = 0, keys
                if band is not None:
                    first, stop = max(0, i + band[0]), min(keys, i + band[1] + 1)
                total = e.dtype.type(0.0)
                for j in range(min(first, keys)):
                    row[j] = 0.0
                for j in range(first, stop):
                    s = row[j]
                    if shift is not None:
                        s -= shift[sample, head, i, 0]
                        s = e.dtype.type(0.0) if s > 0.0 else s
                    row[j] = power(s) if weight is None else power(s) * factor[j]
                    total += row[j]
                for j in range(max(stop, 0), keys):
                    row[j] = 0.0
                if totals is not None:
                    total += totals[sample, head, i, 0]
                sums[sample, head, i, 0] = total
                if total != 0.0:
                    for j in range(keys):
                        row[j] /= total


@leaf(_loop)
def exponentiate(
    e: Array,
    shift: Array | None,
    weight: Array | None,
    masked: bool,
    band: tuple[int, int] | None,
    totals: Array | None,
    sums: Array,
) -> None:
    """Replaces `functional.softmax` of a tile: scores become weights.

    The scores are reduced by a shift for each row, and the exponentials multiplied by a weight for
    each key, 0 for keys that are `masked`. With a `band`, query i sees the keys i + band[0] to
    i + band[1]. Exponentials are divided by the sums of their rows and, if there were other tiles
    of these rows before, of `totals`; these sums are written into `sums`.
    """
    _exponentiate(e, shift, weight, masked, band)
    sums[..., 0] = e @ ones(e.shape[-1], e.dtype)
    if totals is not None:
        sums += totals
    e /= divisors(sums)


def _exponentiate(
    e: Array,
    shift: Array | None,
    weight: Array | None,
    masked: bool,
    band: tuple[int, int] | None,
) -> None:
    if shift is not None:
        e -= shift
        if masked or band is not None:
            np.minimum(e, 0.0, out=e)  # hidden scores may lie above the maximum
    EXP(e, out=e)
    if weight is not None:
        e *= weight
    if band is not None:
        e *= band_of(*e.shape[-2:], *band)


def _backward_of_scores_loop(s, x, shift, weight, masked, band, totals, along):  # type: ignore[no-untyped-def]
    samples, heads, queries, keys = s.shape
    zero, one = s.dtype.type(0.0), s.dtype.type(1.0)
    for sample in range(samples):
        for head in range(heads):
            if weight is not None:
                factor = weight[sample % len(weight), head % weight.shape[1], 0]
            for i in range(queries):
                p, row = s[sample, head, i], x[sample, head, i]
                first, stop = 0, keys
                if band is not None:
                    first, stop = max(0, i + band[0]), min(keys, i + band[1] + 1)
                total = zero
                for j in range(min(first, keys)):
                    p[j] = zero
                for j in range(first, stop):
                    score = p[j]
                    if shift is not None:
                        score -= shift[sample, head, i, 0]
                        score = zero if score > zero else score
                    p[j] = power(score) if weight is None else power(score) * factor[j]
                    total += p[j]
                for j in range(max(stop, 0), keys):
                    p[j] = zero
                if totals is not None:
                    total = totals[sample, head, i, 0]
                if total == zero:  # all exponentials are 0
                    total = one
                if along is None:
                    d = zero
                    for j in range(keys):
                        p[j] /= total
                        d += p[j] * row[j]
                    for j in range(keys):
                        row[j] = p[j] * (row[j] - d)
                else:
                    d = along[sample, head, i, 0]
                    for j in range(keys):
                        p[j] /= total
                        row[j] = p[j] * (row[j] - d)


@leaf(_backward_of_scores_loop)
def softmax_backward_of_scores(
    s: Array,
    x: Array,
    shift: Array | None,
    weight: Array | None,
    masked: bool,
    band: tuple[int, int] | None,
    totals: Array | None,
    along: Array | None,
) -> None:
    """Replaces `functional.softmax` of a tile, and `functional.softmax_backward`, in one pass.

    Scores s become the weights p, as by `exponentiate`, and x, which is dp, becomes the gradient of
    the scores, p (x - D). If the tile has whole rows, D is sum(p x), and `totals` and `along` are
    None; else p is divided by `totals`, the sums over all keys, and D is `along`.
    """
    _exponentiate(s, shift, weight, masked, band)
    sums = s @ ones(s.shape[-1], s.dtype) if totals is None else totals[..., 0]
    s /= divisors(sums)[..., None]
    x -= np.vecdot(s, x)[..., None] if along is None else along
    x *= s


def _backward_loop(p, x):  # type: ignore[no-untyped-def]
    samples, heads, queries, keys = p.shape
    for sample in range(samples):
        for head in range(heads):
            for i in range(queries):
                weights, row = p[sample, head, i], x[sample, head, i]
                d = p.dtype.type(0.0)
                for j in range(keys):
                    d += weights[j] * row[j]
                for j in range(keys):
                    row[j] = weights[j] * (row[j] - d)


@leaf(_backward_loop)
def softmax_backward_of_tile(p: Array, x: Array) -> None:
    """Replaces `functional.softmax_backward` of whole rows with stored weights.

    x, which is dp, becomes the gradient of the scores: x = p (x - sum(p x)).
    """
    x -= np.vecdot(p, x)[..., None]
    x *= p


def divisors(sums: Array) -> Array:
    """Return row sums to divide by: infinity for a row that sees no key, whose weights are 0."""
    return np.where(sums == 0.0, np.inf, sums)


def longest_square(rows: Array, d_head: int) -> float:
    """Return the largest |q|^2 of the heads of some rows, side by side; NaN if there is NaN.

    Call this while the rows are in the cache; another pass over memory would cost more than the
    bound saves.
    """
    squares = (rows * rows).reshape(-1, d_head) @ ones(d_head, rows.dtype)
    return float(squares.max(initial=0.0))
