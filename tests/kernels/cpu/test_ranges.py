"""Averages in float32 beside float64, wherever scores, values and gradients lie in its range."""

from functools import cache

import numpy as np
import pytest

from npformer.engine.cpu import tiles
from tests.kernels.cpu.helpers import by_kernel, by_pair
from tests.kernels.helpers import mask_of, normals

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
    return by_pair(*[a.astype("float64") for a in inputs(kind, offset, sizes)], **options_of(kind))


def errors(ours, exact):
    """Return the largest error of each array, relative to its largest entry."""
    pairs = zip(ours, exact, strict=True)
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs]


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", KINDS)
def test_any_size_of_scores_values_and_gradients(tiling, kind):
    """Scores of 60 are rounded by 4e-6 each, and weights with them."""
    for offset in OFFSETS:
        for sizes in SIZES:
            for store in (True, False):
                ours = by_kernel(*inputs(kind, offset, sizes), store=store, **options_of(kind))
                found = errors(ours, truth(kind, offset, sizes))
                assert np.max(found) < 3e-5, (offset, sizes, store, found)  # NaN fails as well


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("slope", [-70.0, 70.0, 160.0])
def test_a_running_average_does_not_care_for_the_size_of_anything(monkeypatch, slope, store):
    """Scores rise or fall along a row: the sums of tiles may go from 2^-50 to 2^50."""
    monkeypatch.setattr(tiles, "TILE", 4)
    query, key, value, dy = normals(*4 * [(1, 1, 12, 4)])
    query, key = 0.2 * query, 0.2 * key
    query[..., 0], key[..., 0] = 1.0, np.linspace(-0.5, 0.5, 12) * slope
    arrays = [a.astype("float32") for a in (query, key, value, dy)]
    expected = by_kernel(*arrays, store=store)
    for size in (2.0**-90, 2.0**90):  # a power of two, which rounds nothing
        for i in (2, 3):
            given = [np.float32(size) * a if i == j else a for j, a in enumerate(arrays)]
            found = by_kernel(*given, store=store)
            for k, (ours, plain) in enumerate(zip(found, expected, strict=True)):
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
        exact = by_pair(*(a.astype("float64") for a in arrays))
        ours, pairs = (np.max(errors(of(*arrays), exact)) for of in (by_kernel, by_pair))
        ratios.append(ours / pairs)
    assert np.median(ratios) < 1.5, ratios


def test_a_query_that_sees_nothing_takes_nothing_and_sends_nothing_back(tiling):
    for offset in OFFSETS:
        arrays = inputs("padded", offset, (1.0, 1e30))
        for array in by_kernel(*arrays, mask=np.zeros((BATCH, LENGTH), bool)):
            np.testing.assert_array_equal(array, 0.0)
