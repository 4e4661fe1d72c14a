import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 3.0])
def test_is_the_formula_with_epsilon_inside_the_root(rng, eps):
    x = 3.0 + 5.0 * rng.normal(size=(2, 3, 16))
    gamma, beta = rng.normal(size=16), rng.normal(size=16)
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    expected = gamma * (x - mean) / np.sqrt(variance + eps) + beta
    np.testing.assert_allclose(F.layer_norm(x, gamma, beta, eps)[0], expected, rtol=0, atol=1e-14)


def test_a_constant_row_is_finite_in_both_directions(rng):
    y, cache = F.layer_norm(np.full((2, 16), 7.0), np.ones(16), np.zeros(16))
    np.testing.assert_array_equal(y, 0.0)
    for gradient in F.layer_norm_backward(rng.normal(size=(2, 16)), cache):
        assert np.isfinite(gradient).all()


def test_float32_stays_float32_whoever_wrote_eps(rng):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    y, cache = F.layer_norm(x, x[0, 0], x[0, 1], np.float64(1e-5))
    assert {a.dtype.name for a in (y, *F.layer_norm_backward(y, cache))} == {"float32"}


def test_float32_keeps_its_variance_at_a_mean_of_10000(rng):
    x, ones, zeros = rng.normal(size=(4, 256)), np.ones(256), np.zeros(256)
    y, _ = F.layer_norm(*(a.astype("float32") for a in (x + 1e4, ones, zeros)))
    # Rounding x itself to float32 moves it by up to 5e-4; E[x^2] - E[x]^2 would be off by 8.
    np.testing.assert_allclose(y.var(axis=-1), 1.0, atol=1e-3)
    np.testing.assert_allclose(y, F.layer_norm(x, ones, zeros)[0], atol=2e-3)
