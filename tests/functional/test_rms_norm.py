import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 3.0])
def test_is_the_formula_with_epsilon_inside_the_root(rng, eps):
    x, gamma = 3.0 + 5.0 * rng.normal(size=(2, 3, 16)), rng.normal(size=16)
    expected = gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    np.testing.assert_allclose(F.rms_norm(x, gamma, eps)[0], expected, rtol=0, atol=1e-14)


def test_of_rows_with_mean_0_it_is_layer_norm(rng):
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


def test_a_rows_size_changes_nothing_and_its_gradient_is_at_right_angles_to_it(rng):
    x, gamma = rng.normal(size=(4, 8)), rng.normal(size=8)
    y, cache = F.rms_norm(x, gamma, 0.0)
    np.testing.assert_allclose(F.rms_norm(7.0 * x, gamma, 0.0)[0], y, rtol=0, atol=1e-14)
    dx, _ = F.rms_norm_backward(rng.normal(size=x.shape), cache)
    np.testing.assert_allclose(np.vecdot(dx, x), 0.0, rtol=0, atol=1e-14)


def test_a_row_of_zeros_is_finite_in_both_directions(rng):
    y, cache = F.rms_norm(np.zeros((2, 16)), np.ones(16))
    np.testing.assert_array_equal(y, 0.0)
    for gradient in F.rms_norm_backward(rng.normal(size=(2, 16)), cache):
        assert np.isfinite(gradient).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"gamma has shape \(3,\); expected \(4,\)"):
        F.rms_norm(np.ones((2, 4)), np.ones(3))
    with pytest.raises(ValueError, match="eps is -1"):
        F.rms_norm(np.ones((2, 4)), np.ones(4), -1.0)
