import numpy as np
import pytest

from npformer import functional as F


@pytest.fixture
def ones():
    return np.ones(16)


@pytest.fixture
def zeros():
    return np.zeros(16)


def test_every_row_gets_mean_0_and_variance_1(rng, ones, zeros):
    y, _ = F.layer_norm(3.0 + 5.0 * rng.normal(size=(2, 3, 16)), ones, zeros, eps=1e-12)
    np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-14)
    np.testing.assert_allclose(y.var(axis=-1), 1.0, rtol=1e-10)


def test_gamma_scales_and_beta_shifts(rng, ones, zeros):
    x, gamma, beta = rng.normal(size=(4, 16)), rng.normal(size=16), rng.normal(size=16)
    plain, _ = F.layer_norm(x, ones, zeros)
    np.testing.assert_allclose(F.layer_norm(x, gamma, beta)[0], gamma * plain + beta, rtol=1e-14)


def test_the_variance_is_the_rows_own_divided_by_d(ones, zeros):
    x = np.arange(16.0)[None]
    y, _ = F.layer_norm(x, ones, zeros, eps=0.0)
    np.testing.assert_allclose(y, (x - 7.5) / np.sqrt((16**2 - 1) / 12), rtol=1e-14)


def test_a_constant_row_is_finite_in_both_directions(rng, ones, zeros):
    y, cache = F.layer_norm(np.full((2, 16), 7.0), ones, zeros)
    dx, dgamma, dbeta = F.layer_norm_backward(rng.normal(size=(2, 16)), cache)
    np.testing.assert_array_equal(y, 0.0)
    assert all(np.isfinite(g).all() for g in (dx, dgamma, dbeta))


@pytest.mark.parametrize("eps", [1e-5, np.float64(1e-5)])
def test_float32_stays_float32_whoever_wrote_eps(rng, eps):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    gamma, beta = np.ones(8, dtype="float32"), np.zeros(8, dtype="float32")
    y, cache = F.layer_norm(x, gamma, beta, eps)
    assert y.dtype == "float32"
    assert {g.dtype.name for g in F.layer_norm_backward(y, cache)} == {"float32"}


def test_float32_keeps_its_variance_at_a_mean_of_10000(rng):
    x = rng.normal(size=(4, 256))
    ones, zeros = np.ones(256, dtype="float32"), np.zeros(256, dtype="float32")

    y, _ = F.layer_norm((x + 1e4).astype("float32"), ones, zeros)

    # Rounding x itself to float32 moves it by up to 5e-4; E[x^2] - E[x]^2 would be off by 8.
    np.testing.assert_allclose(y.var(axis=-1), 1.0, atol=1e-3)
    exact, _ = F.layer_norm(x, ones.astype("float64"), zeros.astype("float64"))
    np.testing.assert_allclose(y, exact, atol=2e-3)


def test_neither_shift_nor_scale_of_x_matters(rng, ones, zeros):
    x = rng.normal(size=(4, 16))
    y, _ = F.layer_norm(x, ones, zeros, eps=1e-12)
    np.testing.assert_allclose(F.layer_norm(9.0 + 3.0 * x, ones, zeros, eps=1e-12)[0], y, rtol=1e-9)


def test_the_gradient_has_no_part_along_shift_and_scale(rng, ones, zeros):
    x, gamma = rng.normal(size=(4, 16)), 1.0 + rng.normal(size=16)
    y, cache = F.layer_norm(x, gamma, zeros, eps=1e-12)

    dx, _, _ = F.layer_norm_backward(rng.normal(size=y.shape), cache)

    centred = x - x.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(dx.sum(axis=-1), 0.0, atol=1e-12)
    np.testing.assert_allclose((dx * centred).sum(axis=-1), 0.0, atol=1e-10)


def test_epsilon_is_inside_the_root(ones, zeros):
    x = np.tile([1.0, -1.0], 8)[None]  # mean 0, variance 1
    y, _ = F.layer_norm(x, ones, zeros, eps=3.0)
    np.testing.assert_array_equal(y, x / 2.0)
