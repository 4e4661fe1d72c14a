"""The core of attention and synthesizers by itself: tiles, padding, and float32's range."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu import averaging, tiles
from npformer.engine.cpu.exponentials import SAFE, Exponentials, longest_square
from npformer.engine.cpu.rows import UNIT
from npformer.engine.cpu.tiles import Tiling
from tests.kernels.cpu.helpers import assert_close, run_kernel, run_pair
from tests.kernels.helpers import mask_of, normals


@pytest.mark.parametrize("shared", [False, True], ids=["keys", "shared keys"])
@pytest.mark.parametrize("mask", ["none", "padded"])
def test_values_may_be_wider_than_keys(tiling, shared, mask):
    query, key, value, dy = normals((3, 2, 13, 4), (3, 2, 13, 4), (3, 2, 13, 7), (3, 2, 13, 7))
    arguments = query, key[:1] if shared else key, value, dy
    options = {"mask": mask_of(mask, 3, 13), "causal": True}
    assert_close(run_kernel(*arguments, **options), run_pair(*arguments, **options), 1e-12)


@pytest.mark.parametrize("scale", [0.5, 12.0])
@pytest.mark.parametrize("shared", [False, True], ids=["keys", "shared keys"])
def test_a_bias_beside_keys_of_any_kind(tiling, shared, scale):
    query, key, value, dy = normals(*4 * [(3, 2, 13, 4)])
    bias = scale * normals((2, 13), seed=1)[0]
    arguments = scale * query, key[:1] if shared else key, value, dy, bias
    for causal in (False, True):
        options = {"mask": mask_of("padded", 3, 13), "causal": causal}
        assert_close(run_kernel(*arguments, **options), run_pair(*arguments, **options), 1e-12)


def test_gradients_are_finite_where_padding_is_not(tiling):
    query, key, value, dy = normals(*4 * [(3, 2, 13, 4)])
    mask = mask_of("padded", 3, 13)
    clean = run_pair(query, key, value, dy, mask=mask)
    key, value = (np.where(mask[:, None, :, None], a, np.nan) for a in (key, value))
    assert_close(run_kernel(query, key, value, dy, mask=mask), clean, 1e-12)


def test_the_longest_part_of_any_row():
    rows = np.zeros((5, 12))
    rows[1, 3:5], rows[4, 6], rows[2, 11] = (3.0, -4.0), 4.9, -2.0
    for d_head, square in ((3, 25.0), (12, 25.0), (1, 4.9 * 4.9)):
        np.testing.assert_allclose(longest_square(rows, d_head), square)
        assert longest_square(rows[:0], d_head) == 0.0
    rows[0, 0] = np.nan
    np.testing.assert_array_equal(longest_square(rows, 3), np.nan)


def test_the_bound_of_scores_includes_the_bias():
    """The bias comes in the units of e^x, the bound of the scores in those of `EXP`."""
    query, tiling, context = np.zeros((1, 1, 3, 2)), Tiling(1, 1, 3, False), EngineContext()
    for largest_score, bias, needs_maxima in (
        (0.99 * SAFE, None, False),
        (1.01 * SAFE, None, True),
        (math.nan, None, True),
        (0.5 * SAFE, -0.49 * SAFE / UNIT, False),
        (0.5 * SAFE, -0.51 * SAFE / UNIT, True),
        (0.0, 1.01 * SAFE / UNIT, True),
    ):
        bias_array = None if bias is None else np.array([[0.0, bias, 0.0]])
        exponentials = Exponentials(query, query, largest_score, bias_array, None, tiling, context)
        assert (exponentials.shift is not None) == needs_maxima


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_groups_and_tiles_cover_every_score_once(tiling, batch):
    for n_heads, length in product((1, 4), (1, 3, 4, 5, 13)):
        tiling = Tiling(batch, n_heads, length, causal=False)
        counts = np.zeros((batch, n_heads, length, length))
        for group, (queries, keys, *_) in tiling.tiles(tiling.groups, counts):
            tile = counts[(*group, queries, keys)]
            tile += 1
            assert tile.size <= max(tiles.SCORES, tiles.TILE * tiles.TILE)
            assert np.less_equal(tile.shape, tiling.largest).all()
        np.testing.assert_array_equal(counts, 1)


@pytest.mark.parametrize("causal", [False, True])
def test_tiles_of_a_window_have_every_pair_that_is_seen(causal, monkeypatch):
    monkeypatch.setattr(tiles, "SMALLEST", 2)
    for window, length in product((1, 2, 3, 5), (4, 13, 21)):
        tiling = Tiling(1, 1, length, causal, window)
        visible_pairs, begun = np.zeros((length, length)), (set(), set())
        for queries, keys, band, first_of_queries, first_of_keys in tiling.places:
            block = np.ones((queries.stop - queries.start, keys.stop - keys.start))
            if band is not None:
                block = block * tiles.band_of(*block.shape, *band)
            assert block.any()
            visible_pairs[queries, keys] += block
            assert first_of_queries == (queries.start not in begun[0])
            assert first_of_keys == (keys.start not in begun[1])
            begun[0].add(queries.start)
            begun[1].add(keys.start)
        i, j = np.indices(visible_pairs.shape)
        near = (i - window < j) & (j <= i) if causal else abs(i - j) <= window // 2
        np.testing.assert_array_equal(visible_pairs, near)


def test_causal_tiles_stop_at_the_diagonal(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", 4)
    tiling = Tiling(1, 1, 10, causal=True)
    pairs = [(place.queries.start, place.keys.start) for place in tiling.places]
    assert pairs == [(0, 0), (4, 0), (4, 4), (8, 0), (8, 4), (8, 8)]


def test_a_long_sequence_comes_one_head_at_a_time():
    """Memory for sums over several tiles of keys has room for one sample and one head."""
    assert tiles.TILE * tiles.TILE >= tiles.SCORES


def test_no_sample_at_all():
    empty = np.zeros((0, 2, 5, 4))
    for mask in (None, np.ones((0, 5), bool)):
        results = run_kernel(empty, empty, empty, empty, mask=mask)
        assert [a.shape for a in results] == [empty.shape] * 4
    _, _, dkey, _, dbias = run_kernel(empty, np.ones((1, 2, 5, 4)), empty, empty, np.ones((2, 5)))
    assert not dkey.any()
    assert not dbias.any()


BATCH, N_HEADS, LENGTH, D_HEAD = 3, 2, 13, 4

KINDS = {
    "all keys": {},
    "causal": {"causal": True},
    "padded": {"mask": mask_of("padded", BATCH, LENGTH)},
    "causal, padded in front": {"mask": mask_of("in front", BATCH, LENGTH), "causal": True},
    "a bias, shared keys": {"bias": True, "mask": mask_of("padded", BATCH, LENGTH)},
}
OFFSETS = (-60.0, -43.0, 0.0, 40.0, 60.0)
SIZES = [*((1.0, dy) for dy in (1e-30, 1e-22, 1.0, 1e22, 1e30)), (1e-30, 1.0), (1e30, 1.0)]
"""Of values and of the gradient of y."""


def inputs(kind, offset, sizes):
    """Return scores near an offset that is the product of one feature of queries and of keys."""
    query, key, value, dy = normals(*4 * [(BATCH, N_HEADS, LENGTH, D_HEAD)])
    arrays = [0.25 * query, 0.25 * key, sizes[0] * value, sizes[1] * dy]
    if "bias" in KINDS[kind]:
        arrays[1] = arrays[1][:1]
        arrays.append(normals((N_HEADS, LENGTH), seed=1)[0] + 0.25 * offset)
        offset = 0.75 * offset
    arrays[0][..., 0] = abs(offset) ** 0.5
    arrays[1][..., 0] = np.sign(offset) * abs(offset) ** 0.5
    return [a.astype("float32") for a in arrays]


def options_of(kind):
    return {name: value for name, value in KINDS[kind].items() if name != "bias"}


@cache
def truth(kind, offset, sizes):
    return run_pair(*[a.astype("float64") for a in inputs(kind, offset, sizes)], **options_of(kind))


def errors(ours, exact):
    """Return the largest error of each array, relative to its largest entry."""
    pairs = zip(ours, exact, strict=True)
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs]


@pytest.mark.parametrize("kind", KINDS)
def test_any_size_of_scores_values_and_gradients(tiling, kind):
    """Scores of 60 are rounded by 4e-6 each, and weights with them."""
    for offset in OFFSETS:
        for sizes in SIZES:
            for store in (True, False):
                ours = run_kernel(*inputs(kind, offset, sizes), store=store, **options_of(kind))
                result_errors = errors(ours, truth(kind, offset, sizes))
                assert np.max(result_errors) < 3e-5, (
                    offset,
                    sizes,
                    store,
                    result_errors,
                )  # NaN fails as well


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("slope", [-70.0, 70.0, 160.0])
def test_a_running_average_does_not_care_for_the_size_of_anything(monkeypatch, slope, store):
    """Scores rise or fall along a row: the sums of tiles may go from 2^-50 to 2^50."""
    monkeypatch.setattr(averaging, "tiling_of", tiles.Tiling)  # which keeps none of other sizes
    monkeypatch.setattr(tiles, "TILE", 4)
    query, key, value, dy = normals(*4 * [(1, 1, 12, 4)])
    query, key = 0.2 * query, 0.2 * key
    query[..., 0], key[..., 0] = 1.0, np.linspace(-0.5, 0.5, 12) * slope
    arrays = [a.astype("float32") for a in (query, key, value, dy)]
    expected = run_kernel(*arrays, store=store)
    for size in (2.0**-90, 2.0**90):  # a power of two, which rounds nothing
        for i in (2, 3):
            scaled_arrays = [np.float32(size) * a if i == j else a for j, a in enumerate(arrays)]
            results = run_kernel(*scaled_arrays, store=store)
            for k, (ours, plain) in enumerate(zip(results, expected, strict=True)):
                # Other values leave dV as it is, another dY leaves Y.
                unscaled = k == (3 if i == 2 else 0)
                exact = plain if unscaled else np.float32(size) * plain
                np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("top", [20.0, 40.0, 80.0, 161.0])
def test_saturated_rows_lose_no_more_than_in_the_pair(top):
    """Each token attends to itself, q = k: gradients of scores are differences of equal numbers."""
    ratios = []
    for seed in range(12):
        query, value, dy = normals(*3 * [(2, 2, 64, 16)], seed=seed)
        query *= np.sqrt(top / (query**2).sum(axis=-1, keepdims=True))
        arrays = [a.astype("float32") for a in (query, query, value, dy)]
        exact = run_pair(*(a.astype("float64") for a in arrays))
        ours, pairs = (np.max(errors(of(*arrays), exact)) for of in (run_kernel, run_pair))
        ratios.append(ours / pairs)
    assert np.median(ratios) < 1.5, ratios


def test_a_query_that_sees_nothing_contributes_nothing(tiling):
    for offset in OFFSETS:
        arrays = inputs("padded", offset, (1.0, 1e30))
        for array in run_kernel(*arrays, mask=np.zeros((BATCH, LENGTH), bool)):
            np.testing.assert_array_equal(array, 0.0)
