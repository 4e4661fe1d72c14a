import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_expectation_is_the_input(rate):
    generator, calls, n = np.random.default_rng(0), 400, 1000
    y = np.array([F.dropout(np.ones((10, n // 10)), rate, generator)[0] for _ in range(calls)])
    # Within a call, entries vary; between calls, the threshold of 256 rate, rounded up or down.
    fraction = 256.0 * rate % 1.0
    deviation = np.sqrt((rate * (1.0 - rate) / n + fraction * (1.0 - fraction) / 256.0**2) / calls)
    assert abs((y == 0.0).mean() - rate) < 4 * deviation
    assert abs(y.mean() - 1.0) < 4 * deviation / (1.0 - rate)


def test_what_is_kept_is_scaled(rng):
    x = rng.normal(size=(50, 4))
    y, _ = F.dropout(x, 0.2, np.random.default_rng(0))
    np.testing.assert_allclose(y[y != 0.0], x[y != 0.0] / 0.8, rtol=1e-14)


@pytest.mark.parametrize(("rate", "seed"), [(0.9, None), (0.0, 0)], ids=["evaluation", "rate 0"])
def test_without_dropout_no_entry_changes(rng, rate, seed):
    x = rng.normal(size=(5, 4))
    generator = None if seed is None else np.random.default_rng(seed)
    np.testing.assert_array_equal(F.dropout(x, rate, generator)[0], x)


@pytest.mark.parametrize(("rate", "seed"), [(0.9, None), (0.0, 0)], ids=["evaluation", "rate 0"])
def test_without_dropout_no_number_is_drawn(rng, rate, seed):
    generator = None if seed is None else np.random.default_rng(seed)
    F.dropout(rng.normal(size=(5, 4)), rate, generator)
    assert generator is None or generator.random() == np.random.default_rng(seed).random()


def test_the_same_seed_gives_the_same_mask():
    x = np.ones((8, 8))
    first, _ = F.dropout(x, 0.5, np.random.default_rng(0))
    again, _ = F.dropout(x, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(again, first)


def test_the_next_draw_gives_another_mask():
    x, generator = np.ones((8, 8)), np.random.default_rng(0)
    first, _ = F.dropout(x, 0.5, generator)
    second, _ = F.dropout(x, 0.5, generator)
    assert (second != first).any()


def test_float32_and_float64_drop_the_same_entries():
    single, _ = F.dropout(np.ones(100, dtype="float32"), 0.5, np.random.default_rng(0))
    double, _ = F.dropout(np.ones(100), 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(single, double)
