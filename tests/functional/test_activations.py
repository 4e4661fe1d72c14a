import math

import numpy as np
import pytest

from npformer import functional as F


def test_relu_keeps_what_is_positive():
    y, _ = F.relu(np.array([-2.0, -0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(y, [0.0, 0.0, 0.0, 3.0])


def test_relu_takes_0_as_its_slope_at_0():
    _, cache = F.relu(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(F.relu_backward(np.full(3, 5.0), cache), [0.0, 0.0, 5.0])


@pytest.mark.parametrize("x", [-6.0, -1.0, 0.0, 0.3, 1.0, 6.0])
def test_gelu_is_x_times_the_normal_distribution_function(x):
    y, _ = F.gelu(np.array([x]))
    phi = 0.5 * math.erfc(-x / math.sqrt(2.0))
    np.testing.assert_allclose(y, [x * phi], rtol=1e-7, atol=1e-15)


def test_gelus_tanh_form_is_close_to_the_exact_one_and_another_function():
    x = np.linspace(-4.0, 4.0, 101)
    exact, approximate = F.gelu(x)[0], F.gelu(x, approximate="tanh")[0]
    assert 1e-5 < np.abs(exact - approximate).max() < 1e-3


def test_gelus_tanh_form_at_1_is_the_published_formula():
    t = math.tanh(math.sqrt(2.0 / math.pi) * (1.0 + 0.044715))
    np.testing.assert_allclose(F.gelu(np.ones(1), approximate="tanh")[0], [0.5 * (1 + t)])


def test_each_form_of_gelu_has_its_own_gradient():
    x = np.linspace(-3.0, 3.0, 13)
    exact = F.gelu_backward(np.ones(13), F.gelu(x)[1])
    approximate = F.gelu_backward(np.ones(13), F.gelu(x, approximate="tanh")[1])
    assert np.abs(exact - approximate).max() > 1e-4


def test_sigmoid_neither_overflows_nor_leaves_0_to_1():
    y, cache = F.sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    np.testing.assert_array_equal(y, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(F.sigmoid_backward(np.ones(3), cache), [0.0, 0.25, 0.0])


def test_sigmoid_is_symmetric(rng):
    x = rng.normal(size=9)
    np.testing.assert_allclose(F.sigmoid(-x)[0], 1.0 - F.sigmoid(x)[0], rtol=1e-14)


def test_tanhs_slope_is_largest_at_0():
    y, cache = F.tanh(np.array([-20.0, 0.0, 20.0]))
    np.testing.assert_allclose(y, [-1.0, 0.0, 1.0])
    np.testing.assert_allclose(F.tanh_backward(np.ones(3), cache), [0.0, 1.0, 0.0], atol=1e-15)
