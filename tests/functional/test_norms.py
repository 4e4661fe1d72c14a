"""Layer norm and RMS norm."""

import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 3.0])
def test_each_is_the_formula_with_epsilon_inside_the_root(rng, eps):
    x = 3.0 + 5.0 * rng.normal(size=(2, 3, 16))
    gamma, beta = rng.normal(size=16), rng.normal(size=16)
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    expected = gamma * (x - mean) / np.sqrt(variance + eps) + beta
    np.testing.assert_allclose(F.layer_norm(x, gamma, beta, eps)[0], expected, rtol=0, atol=1e-14)
    expected = gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    np.testing.assert_allclose(F.rms_norm(x, gamma, eps)[0], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "constant", "maps"),
    [("layer_norm", 7.0, (np.ones(16), np.zeros(16))), ("rms_norm", 0.0, (np.ones(16),))],
)
def test_a_constant_row_is_finite_in_both_directions(rng, name, constant, maps):
    y, cache = getattr(F, name)(np.full((2, 16), constant), *maps)
    np.testing.assert_array_equal(y, 0.0)
    for gradient in getattr(F, f"{name}_backward")(rng.normal(size=(2, 16)), cache):
        assert np.isfinite(gradient).all()


def test_float32_stays_float32_whoever_wrote_eps(rng):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    y, cache = F.layer_norm(x, x[0, 0], x[0, 1], np.float64(1e-5))
    assert {a.dtype.name for a in (y, *F.layer_norm_backward(y, cache))} == {"float32"}


@pytest.mark.parametrize("mean", [0.0, 1e2, 1e4, 1e6, -1e6])
def test_float32_loses_nothing_to_a_large_mean(rng, mean):
    arrays = (mean + rng.normal(size=(64, 768)), rng.normal(size=768), rng.normal(size=768))
    singles = [a.astype("float32") for a in arrays]
    exact, exact_cache = F.layer_norm(*(a.astype("float64") for a in singles))
    y, cache = F.layer_norm(*singles)
    np.testing.assert_allclose(y, exact, rtol=0, atol=3e-6)
    dy = rng.normal(size=y.shape).astype("float32")
    gradients = F.layer_norm_backward(dy.astype("float64"), exact_cache)
    for ours, theirs in zip(F.layer_norm_backward(dy, cache), gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("d", [1, 2, 3, 7, 64, 257, 768, 4097])
def test_a_constant_row_is_beta_whatever_the_constant(rng, d):
    for dtype in ("float32", "float64"):
        gamma, beta = rng.normal(size=(2, d)).astype(dtype)
        for constant in (0.1, -7.0 / 3.0, 12345.678, 1e6 / 3.0, 1e30 / 7.0):
            y, _ = F.layer_norm(np.full((2, d), constant, dtype), gamma, beta, 1e-12)
            np.testing.assert_array_equal(y, np.broadcast_to(beta, y.shape))


def test_of_rows_with_mean_0_rms_norm_is_layer_norm(rng):
    x, gamma = rng.normal(size=(2, 3, 16)), rng.normal(size=16)
    x -= x.mean(axis=-1, keepdims=True)
    y, cache = F.rms_norm(x, gamma)
    theirs, their_cache = F.layer_norm(x, gamma, np.zeros(16))
    np.testing.assert_allclose(y, theirs, rtol=0, atol=1e-14)
    dy = rng.normal(size=x.shape)
    dx, dgamma = F.rms_norm_backward(dy, cache)
    along_mean, their_dgamma, _ = F.layer_norm_backward(dy, their_cache)
    np.testing.assert_allclose(dgamma, their_dgamma, rtol=0, atol=1e-13)
    # layer norm also takes out the mean of the gradient
    without_mean = dx - dx.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(without_mean, along_mean, rtol=0, atol=1e-13)


def test_to_rms_norm_the_size_of_a_row_changes_nothing(rng):
    x, gamma = rng.normal(size=(4, 8)), rng.normal(size=8)
    y, _ = F.rms_norm(x, gamma, 0.0)
    np.testing.assert_allclose(F.rms_norm(7.0 * x, gamma, 0.0)[0], y, rtol=0, atol=1e-14)


def test_the_gradient_of_rms_norm_is_at_right_angles_to_the_row(rng):
    x, gamma = rng.normal(size=(4, 8)), rng.normal(size=8)
    _, cache = F.rms_norm(x, gamma, 0.0)
    dx, _ = F.rms_norm_backward(rng.normal(size=x.shape), cache)
    np.testing.assert_allclose(np.vecdot(dx, x), 0.0, rtol=0, atol=1e-14)


def test_what_does_not_fit_rms_norm_is_refused():
    with pytest.raises(ValueError, match=r"gamma has shape \(3,\); expected \(4,\)"):
        F.rms_norm(np.ones((2, 4)), np.ones(3))
    with pytest.raises(ValueError, match="eps is -1"):
        F.rms_norm(np.ones((2, 4)), np.ones(4), -1.0)
