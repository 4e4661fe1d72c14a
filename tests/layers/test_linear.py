import numpy as np

from npformer import functional as F
from npformer.layers import Linear


def test_is_the_function_with_parameters_of_its_own(either, rng):
    layer, x = either(Linear(4, 3, seed=0, dtype="float64")), rng.normal(size=(2, 5, 4))
    y, _ = F.linear(x, layer.weight.value, layer.bias.value)
    np.testing.assert_array_equal(layer(x), y)


def test_a_bias_is_0_at_first_and_does_not_change_the_weights():
    with_bias, without = Linear(4, 3, seed=0), Linear(4, 3, bias=False, seed=0)
    assert list(without.parameters()) == ["weight"]
    np.testing.assert_array_equal(with_bias.bias.value, 0.0)
    np.testing.assert_array_equal(with_bias.weight.value, without.weight.value)


def test_a_first_output_has_about_the_variance_of_its_input(either, rng):
    layer = either(Linear(400, 400, seed=0, dtype="float64"))
    assert 0.9 < layer(rng.normal(size=(200, 400))).var() < 1.1
