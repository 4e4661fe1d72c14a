import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_expectation_is_the_input(rate):
    n = 200_000
    y, _ = F.dropout(np.ones(n), rate, np.random.default_rng(0))
    standard_error = np.sqrt(rate / (1.0 - rate) / n)
    assert abs(y.mean() - 1.0) < 4 * standard_error
    assert abs((y == 0.0).mean() - rate) < 4 * np.sqrt(rate * (1.0 - rate) / n)


def test_what_is_kept_is_scaled(rng):
    x = rng.normal(size=(50, 4))
    y, _ = F.dropout(x, 0.2, np.random.default_rng(0))
    kept = y != 0.0
    np.testing.assert_allclose(y[kept], x[kept] / 0.8, rtol=1e-14)


def test_nothing_happens_at_evaluation(rng):
    x, dy = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    y, cache = F.dropout(x, 0.9)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(F.dropout_backward(dy, cache), dy)


def test_rate_0_draws_nothing(rng):
    x, generator = rng.normal(size=(5, 4)), np.random.default_rng(0)
    y, _ = F.dropout(x, 0.0, generator)
    np.testing.assert_array_equal(y, x)
    assert generator.random() == np.random.default_rng(0).random()


def test_the_gradient_goes_where_the_signal_went(rng):
    x, dy = 1.0 + rng.random((20, 4)), rng.normal(size=(20, 4))
    y, cache = F.dropout(x, 0.5, np.random.default_rng(0))
    np.testing.assert_allclose(F.dropout_backward(dy, cache), dy * y / x, rtol=1e-14)


def test_a_seed_repeats_the_mask_and_the_next_draw_does_not():
    x, generator = np.ones((8, 8)), np.random.default_rng(0)
    first, _ = F.dropout(x, 0.5, generator)
    second, _ = F.dropout(x, 0.5, generator)
    again, _ = F.dropout(x, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(again, first)
    assert (second != first).any()


def test_float32_and_float64_drop_the_same_entries():
    single, _ = F.dropout(np.ones(100, dtype="float32"), 0.5, np.random.default_rng(0))
    double, _ = F.dropout(np.ones(100), 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(single, double)
