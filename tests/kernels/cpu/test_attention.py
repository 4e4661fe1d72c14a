"""Attention by tiles and groups gives the numbers of the plain pair; so do synthesizers."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from npformer.engine.cpu import averaging, exponentials, rows, tiles
from tests.kernels import helpers
from tests.kernels.cpu.helpers import (
    assert_close,
    assert_parity,
    assert_same,
    expected,
    forward,
    run,
)
from tests.kernels.helpers import MASKS

SIZES = [(1, 1, 1, 1), (1, 7, 3, 1), (3, 13, 1, 3), (4, 9, 4, 2), (2, 12, 2, 16)]
"""Batch, length, heads, features of a head."""

LARGE = 8.0
"""Makes scores of hundreds: float32 then has errors of 1e-5 in each, the pair's own too."""


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("mask", MASKS)
def test_of_any_shape_mask_tiling_and_storage(tiling, mask, causal):
    for sizes in SIZES:
        for scale, single in ((1.0, 5e-6), (LARGE, 5e-4)):
            case = helpers.attention_heads(*sizes, mask, causal, scale=scale)
            stored, again = (replace(case, others=(*case.others[:2], s)) for s in (True, False))
            assert_close(run(stored), expected(case), 1e-12)
            assert_close(run(again), expected(case), 1e-12)
            if not tiling:  # tiles do not depend on the precision
                assert_close(run(case, "float32"), expected(case, "float32"), single)


def exponentials_of(case, **options):
    """Return the `Exponentials` in the cache of a call."""
    _, cache = forward(case, case.arrays, case.context(**options))
    return cache[4][0]


@pytest.mark.parametrize(("scale", "subtracts"), [(1.0, False), (LARGE, True)])
def test_large_scores_alone_need_row_maxima(scale, subtracts):
    exponentials = exponentials_of(helpers.attention_heads(2, 12, 2, 16, scale=scale))
    assert (exponentials.shift is not None) == subtracts


LONG = tiles.TILE + 77


@pytest.mark.parametrize(
    "case",
    [
        helpers.attention_heads(1, tiles.TILE + LONG, 1, 4, "padded", True),
        helpers.attention_heads(1, tiles.TILE + LONG, 1, 4, scale=LARGE),
        helpers.dense_heads(2, LONG, 1, 4, LONG + 5, "padded", True),
        helpers.dense_heads(2, LONG, 1, 4, LONG + 5, "padded", bias=1000.0),
    ],
)
def test_a_long_sequence_with_tiles_as_they_are(case):
    assert_close(run(case), expected(case), 1e-12)


@pytest.mark.parametrize(
    ("length", "store", "keep", "stored"),
    [
        (9, None, True, True),
        (10, None, True, False),
        (9, False, True, False),
        (10, True, True, True),
        (9, True, False, False),
    ],
)
def test_short_sequences_are_stored_unless_told_otherwise(monkeypatch, length, store, keep, stored):
    monkeypatch.setattr(averaging, "STORED", 9)
    exponentials = exponentials_of(helpers.attention_heads(2, length, 2, 4, store=store), keep=keep)
    assert (exponentials.stored is not None) == stored


def test_stored_weights_give_the_bits_of_recomputed_ones(tiling):
    for mask in ("none", "padded"):
        cases = [helpers.attention_heads(mask=mask, causal=True, store=s) for s in (True, False)]
        assert_same(run(cases[0]), run(cases[1]))


# Padding ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [
        helpers.attention_heads,
        partial(helpers.attention_heads, causal=True),
        helpers.dense_heads,
        partial(helpers.dense_heads, batch=1),
    ],
)
@pytest.mark.parametrize("mask", ["padded", "in front", "one token"])
def test_padding_may_hold_anything(tiling, mask, make):
    case = make(mask=mask)
    x, *maps = case.arrays
    clean = expected(case)[0]
    for junk in (np.nan, np.inf, 1e30):
        junked = np.where(case.mask[..., None], x, junk)
        with np.errstate(invalid="ignore", over="ignore"):
            y, _ = forward(case, (junked, *maps), case.context())
        np.testing.assert_allclose(y[case.mask], clean[case.mask], rtol=0, atol=1e-12)


def test_nan_in_the_padding_is_not_taken_for_small_scores():
    """No comparison with NaN is true, and the bound of the scores is NaN here."""
    case = helpers.attention_heads(mask="padded", scale=LARGE)
    x, *maps = (a.astype("float32") for a in case.arrays)
    x[~case.mask] = np.nan
    y, _ = forward(case, (x, *maps), case.context())
    clean = expected(case, "float32")[0]
    np.testing.assert_allclose(y[case.mask], clean[case.mask], rtol=0, atol=1e-3)


@pytest.mark.parametrize("scale", [1.0, LARGE])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_queries_with_nothing_to_see_contribute_nothing(tiling, causal, scale):
    case = helpers.attention_heads(mask="nothing", causal=causal, scale=scale)
    assert_same(run(case), [np.zeros_like(a) for a in (case.arrays[0], *case.arrays)])


def test_no_gradient_reaches_padding(tiling):
    case = helpers.attention_heads(mask="padded", causal=True)
    dy = np.random.default_rng(2).normal(size=case.arrays[0].shape) * case.mask[..., None]
    _, dx, *_ = run(case, dy=dy)
    np.testing.assert_array_equal(dx[~case.mask], 0.0)


# Scores of any size -------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [3.0, 4.0, 5.0, 20.0, 1e3, 1e6])
def test_scores_from_moderate_to_absurd(tiling, scale):
    """Differences of scores of 1e12 are rounding: all that can be asked for is finite numbers."""
    for causal in (False, True):
        case = helpers.attention_heads(mask="padded", causal=causal, scale=scale)
        if scale <= 20.0:
            assert_parity(case, 1e-11, 1e-2 if scale > 5.0 else 1e-4)
        for dtype in ("float64", "float32"):
            assert all(np.isfinite(a).all() for a in run(case, dtype))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share", [0.98, 1.02])
@pytest.mark.parametrize("gradient", [1.0, 1e-9, 1e-12])
@pytest.mark.parametrize("value", [1.0, 1e8])
def test_scores_at_the_edge_of_what_is_safe_have_room_on_both_sides(sign, share, gradient, value):
    """Without row maxima, exp(score) times values and gradients has to stay within float32.

    All scores are about as large, or as small, as they may be.
    """
    case = helpers.attention_heads(1, 64, 1, 4)
    x, Wq, bq, Wk, bk, Wv, bv = case.arrays
    largest = (share * exponentials.SAFE / rows.UNIT * 2.0) ** 0.5  # q . k / sqrt(4)
    bq, bk = np.zeros_like(bq), np.zeros_like(bk)
    bq[0], bk[0] = largest, sign * largest
    case = replace(case, arrays=(x, 3e-4 * Wq, bq, 3e-4 * Wk, bk, value * Wv, value * bv))
    dy = gradient * np.random.default_rng(1).normal(size=x.shape)
    assert_close(run(case, "float32", dy), expected(case, "float32", dy), 1e-4)


@pytest.mark.parametrize(
    ("case", "biases", "size"),
    [
        (helpers.attention_heads(4, 13, 1, 8, scale=LARGE), (1, 3), 1.0),
        (helpers.dense_heads(4, 13, 1, 8), (1,), 100.0),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_the_largest_scores_may_be_in_any_piece(monkeypatch, first, case, biases, size):
    monkeypatch.setattr(rows, "CHUNK", 40)
    x, *maps = (a.copy() for a in case.arrays)
    x[slice(1, None) if first else slice(None, -1)] = 0.0  # all but one sample
    for i in biases:
        maps[i][...] = 0.0
    case = replace(case, arrays=(size * x, *maps))
    assert_close(run(case, "float32"), expected(case, "float32"), 5e-4)
