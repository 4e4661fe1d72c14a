"""The core of attention and of synthesizers by itself: tiles, groups, padding."""

import math
from itertools import product

import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu import tiles
from npformer.engine.cpu.exponentials import SAFE, Exponentials, longest_squares
from npformer.engine.cpu.rows import UNIT
from npformer.engine.cpu.tiles import Tiling
from tests.kernels.cpu.helpers import assert_close, by_kernel, by_pair
from tests.kernels.helpers import mask_of, normals


@pytest.mark.parametrize("shared", [False, True], ids=["keys", "shared keys"])
@pytest.mark.parametrize("mask", ["none", "padded"])
def test_values_may_be_wider_than_keys(tiling, shared, mask):
    query, key, value, dy = normals((3, 2, 13, 4), (3, 2, 13, 4), (3, 2, 13, 7), (3, 2, 13, 7))
    arguments = query, key[:1] if shared else key, value, dy
    options = {"mask": mask_of(mask, 3, 13), "causal": True}
    assert_close(by_kernel(*arguments, **options), by_pair(*arguments, **options), 1e-12)


@pytest.mark.parametrize("scale", [0.5, 12.0])
@pytest.mark.parametrize("shared", [False, True], ids=["keys", "shared keys"])
def test_a_bias_beside_keys_of_any_kind(tiling, shared, scale):
    query, key, value, dy = normals(*4 * [(3, 2, 13, 4)])
    bias = scale * normals((2, 13), seed=1)[0]
    arguments = scale * query, key[:1] if shared else key, value, dy, bias
    for causal in (False, True):
        options = {"mask": mask_of("padded", 3, 13), "causal": causal}
        assert_close(by_kernel(*arguments, **options), by_pair(*arguments, **options), 1e-12)


def test_gradients_are_finite_where_keys_and_values_of_padding_are_not(tiling):
    query, key, value, dy = normals(*4 * [(3, 2, 13, 4)])
    mask = mask_of("padded", 3, 13)
    clean = by_pair(query, key, value, dy, mask=mask)
    key, value = (np.where(mask[:, None, :, None], a, np.nan) for a in (key, value))
    assert_close(by_kernel(query, key, value, dy, mask=mask), clean, 1e-12)


def test_the_longest_part_of_any_row_of_each_projection():
    rows = np.zeros((5, 12))
    rows[1, 3:5], rows[4, 6], rows[2, 11] = (3.0, -4.0), 4.9, -2.0
    for given, squares in (
        *(((3,), [25.0]), ((12,), [25.0]), ((1,), [4.9 * 4.9]), ((3, 2), [25.0, 4.9 * 4.9])),
        ((3, 4), [0.0, 25.0, 4.9 * 4.9, 4.0]),
    ):
        np.testing.assert_allclose(longest_squares(rows, *given), squares)
        np.testing.assert_array_equal(longest_squares(rows[:0], *given), 0.0 * np.array(squares))
    rows[0, 0] = np.nan
    np.testing.assert_array_equal(longest_squares(rows, 3), [np.nan])
    np.testing.assert_allclose(longest_squares(rows, 3, 2), [np.nan, 4.9 * 4.9])


def test_scores_and_bias_are_bounded_together_and_in_one_unit():
    """The bias comes in the units of e^x, the bound of the scores in those of `EXP`."""
    query, tiling, context = np.zeros((1, 1, 3, 2)), Tiling(1, 1, 3, False), EngineContext()
    for longest, bias, needs_maxima in (
        *((0.99 * SAFE, None, False), (1.01 * SAFE, None, True), (math.nan, None, True)),
        *((0.5 * SAFE, -0.49 * SAFE / UNIT, False), (0.5 * SAFE, -0.51 * SAFE / UNIT, True)),
        (0.0, 1.01 * SAFE / UNIT, True),
    ):
        given = None if bias is None else np.array([[0.0, bias, 0.0]])
        found = Exponentials(query, query, longest, given, None, tiling, context)
        assert (found.shift is not None) == needs_maxima


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_groups_and_tiles_cover_every_score_once(tiling, batch):
    for n_heads, length in product((1, 4), (1, 3, 4, 5, 13)):
        tiling = Tiling(batch, n_heads, length, causal=False)
        seen = np.zeros((batch, n_heads, length, length))
        for group, queries, keys in tiling.tiles(tiling.groups):
            tile = seen[(*group, queries, keys)]
            tile += 1
            assert tile.size <= max(tiles.SCORES, tiles.TILE * tiles.TILE)
            assert np.less_equal(tile.shape, tiling.largest).all()
        np.testing.assert_array_equal(seen, 1)


@pytest.mark.parametrize("causal", [False, True])
def test_tiles_of_a_window_have_every_pair_that_is_seen(causal, monkeypatch):
    monkeypatch.setattr(tiles, "SMALLEST", 2)
    for window, length in product((1, 2, 3, 5), (4, 13, 21)):
        tiling = Tiling(1, 1, length, causal, window)
        seen, begun = np.zeros((length, length)), (set(), set())
        for tile in tiling.tiles(tiling.groups):
            _, queries, keys = tile
            block = np.ones((queries.stop - queries.start, keys.stop - keys.start))
            if (band := tiling.band(tile)) is not None:
                block = block * tiles.band_of(*block.shape, *band)
            assert block.any()
            seen[queries, keys] += block
            assert tiling.first_of_queries(tile) == (queries.start not in begun[0])
            assert tiling.first_of_keys(tile) == (keys.start not in begun[1])
            begun[0].add(queries.start)
            begun[1].add(keys.start)
        i, j = np.indices(seen.shape)
        near = (i - window < j) & (j <= i) if causal else abs(i - j) <= window // 2
        np.testing.assert_array_equal(seen, near)


def test_causal_tiles_stop_at_the_diagonal(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", 4)
    tiling = Tiling(1, 1, 10, causal=True)
    pairs = [(queries.start, keys.start) for _, queries, keys in tiling.tiles(tiling.groups)]
    assert pairs == [(0, 0), (4, 0), (4, 4), (8, 0), (8, 4), (8, 8)]


def test_a_long_sequence_comes_one_head_at_a_time():
    """Memory for sums over several tiles of keys has room for one sample and one head."""
    assert tiles.TILE * tiles.TILE >= tiles.SCORES


def test_no_sample_at_all():
    empty = np.zeros((0, 2, 5, 4))
    for mask in (None, np.ones((0, 5), bool)):
        found = by_kernel(empty, empty, empty, empty, mask=mask)
        assert [a.shape for a in found] == [empty.shape] * 4
    _, _, dkey, _, dbias = by_kernel(empty, np.ones((1, 2, 5, 4)), empty, empty, np.ones((2, 5)))
    assert not dkey.any()
    assert not dbias.any()
