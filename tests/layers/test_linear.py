import numpy as np

from npformer import functional as F
from npformer.layers import Linear


def test_is_the_function_with_parameters_of_its_own(either, rng):
    layer, x = either(Linear(4, 3, seed=0, dtype="float64")), rng.normal(size=(2, 5, 4))
    y, _ = F.linear(x, layer.weight.value, layer.bias.value)
    np.testing.assert_array_equal(layer(x), y)


def test_without_a_bias_there_is_no_parameter_for_one():
    assert list(Linear(4, 3, bias=False, seed=0).parameters()) == ["weight"]


def test_a_bias_begins_at_0_and_leaves_the_weights_as_they_are_without_it():
    with_bias, without = Linear(4, 3, seed=0), Linear(4, 3, bias=False, seed=0)
    np.testing.assert_array_equal(with_bias.bias.value, 0.0)
    np.testing.assert_array_equal(with_bias.weight.value, without.weight.value)


def test_a_first_output_has_about_the_variance_of_its_input(either, rng):
    layer = either(Linear(400, 400, seed=0, dtype="float64"))
    assert 0.9 < layer(rng.normal(size=(200, 400))).var() < 1.1
