import numpy as np

from npformer import functional as F
from npformer.layers import Conv1d, Linear
from tests.passes import assert_same, both_passes


def test_is_the_function_with_the_layers_parameters(either, rng):
    layer = either(Linear(4, 3, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 4))
    y, _ = F.linear(x, layer.weight.value, layer.bias.value)
    np.testing.assert_array_equal(layer(x), y)


def test_a_bias_is_0_at_first():
    np.testing.assert_array_equal(Linear(4, 3, seed=0).bias.value, 0.0)


def test_a_bias_does_not_change_the_weights():
    with_bias = Linear(4, 3, seed=0)
    without_bias = Linear(4, 3, bias=False, seed=0)
    assert list(without_bias.parameters()) == ["weight"]
    np.testing.assert_array_equal(with_bias.weight.value, without_bias.weight.value)


def test_a_first_output_has_about_the_variance_of_its_input(either, rng):
    layer = either(Linear(400, 400, seed=0, dtype="float64"))
    assert 0.9 < layer(rng.normal(size=(200, 400))).var() < 1.1


def test_kernel_1_is_linear_of_the_same_seed_bit_for_bit(either, rng):
    conv1d, linear = (either(kind(4, 3, seed=0, dtype="float64")) for kind in (Conv1d, Linear))
    x = rng.normal(size=(2, 5, 4))
    assert_same(both_passes(conv1d, x), both_passes(linear, x))


def test_an_output_sees_only_as_many_positions_as_the_kernel_has(either, rng):
    layer = either(Conv1d(4, 3, 3, padding="valid", seed=0, dtype="float64"))
    assert layer(rng.normal(size=(2, 5, 4))).shape == (2, 3, 3)
    layer = either(Conv1d(4, 3, 3, seed=0, dtype="float64"))
    x = rng.normal(size=(1, 9, 4))
    y = layer(x)
    x[:, 4] += 1.0
    np.testing.assert_array_equal(np.flatnonzero((layer(x) != y).any(axis=(0, 2))), [3, 4, 5])


def test_without_a_bias_there_is_none(either, rng):
    layer = either(Conv1d(4, 3, 3, bias=False, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 4))
    assert layer.bias is None
    assert list(layer.parameters()) == ["weight"]
    y, dx, dW = both_passes(layer, x)
    expected_y, cache = F.conv1d(x, layer.weight.value)
    np.testing.assert_allclose(y, expected_y, rtol=1e-13, atol=1e-15)
    dy = np.cos(np.arange(y.size)).reshape(y.shape)
    for gradient, expected in zip((dx, dW), F.conv1d_backward(dy, cache), strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-15)
