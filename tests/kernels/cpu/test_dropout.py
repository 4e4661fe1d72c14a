"""Masks of one byte an entry: the probability exact, the same draw with and without kernels."""

import math

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu.dropout import dropout, dropout_backward
from npformer.functional.dropout import draw_kept

CALLS, ENTRIES = 2000, 8192


@pytest.mark.parametrize("rate", [0.1, 0.3, 1 / 512, 0.999, 0.5, 1e-4])
def test_the_probability_is_exact_though_bytes_have_256_values(rate):
    """A threshold of 256 rate, rounded down or to the nearest, would miss by many deviations."""
    generator = np.random.default_rng(7)
    dropped = 0
    for _ in range(CALLS):
        dropped += ENTRIES - np.count_nonzero(draw_kept((ENTRIES,), rate, generator))
    # Thresholds vary from call to call, entries within one.
    fraction = 256.0 * rate - math.floor(256.0 * rate)
    between, within = fraction * (1.0 - fraction) / 256.0**2, rate * (1.0 - rate) / ENTRIES
    deviation = math.sqrt((between + within) / CALLS)
    assert abs(dropped / (CALLS * ENTRIES) - rate) < 4.0 * deviation
    for threshold in (math.floor(256.0 * rate), round(256.0 * rate)):
        off = abs(threshold / 256.0 - rate)
        assert off == 0.0 or off > 4.5 * deviation  # so this test would see it


def test_entries_are_drawn_apart_from_each_other():
    centred_mask = draw_kept((1 << 18,), 0.5, np.random.default_rng(0)).astype("float64") - 0.5
    for lag in (1, 2, 4, 7, 8, 16, 64):
        assert abs((centred_mask[lag:] * centred_mask[:-lag]).mean()) < 4.0 * 0.25 / 512.0


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (9,), (3, 5, 7), (0, 4)])
def test_a_mask_of_any_shape(shape):
    is_kept = draw_kept(shape, 0.5, np.random.default_rng(0))
    assert is_kept.shape == shape
    assert is_kept.dtype == bool


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 1 / 512, 0.999])
def test_dropout_scales_the_entries_that_its_mask_keeps(rng, rate, dtype):
    x = (1.0 + rng.random((50, 41))).astype(dtype)
    for seed in range(3):  # 1 / 512: some calls drop nothing
        is_kept = draw_kept(x.shape, rate, np.random.default_rng(seed))
        y, cache = dropout(x, rate, np.random.default_rng(seed), context=EngineContext())
        np.testing.assert_array_equal(y != 0.0, is_kept)
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(y[is_kept], x[is_kept] / (1.0 - rate), rtol=4 * eps)
        np.testing.assert_array_equal(dropout_backward(x, cache), y)


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_kernel_and_pair_draw_the_same_mask_from_a_seed(rng, rate):
    x, generators = rng.normal(size=(9, 31)), [np.random.default_rng(3) for _ in range(2)]
    for _ in range(3):
        y, _ = dropout(x, rate, generators[0], context=EngineContext())
        plain, _ = F.dropout(x, rate, generators[1])
        np.testing.assert_allclose(y, plain, rtol=1e-15)
    assert generators[0].random() == generators[1].random()  # both left it in the same state


def test_nothing_is_drawn_at_evaluation_or_at_rate_0(rng):
    x, generator = rng.normal(size=(3, 4)), np.random.default_rng(0)
    for rate, drawn in ((0.5, None), (0.0, generator)):
        y, cache = dropout(x, rate, drawn, context=EngineContext())
        assert y is x
        assert dropout_backward(x, cache) is x
    assert generator.random() == np.random.default_rng(0).random()
