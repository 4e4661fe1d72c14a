import numpy as np

from npformer.layers import Linear, MeanPooling, Sequential, TimeDistributed
from tests.passes import assert_same, both_passes


def test_a_time_distributed_linear_layer_is_a_linear_layer(either, rng):
    linear, x = Linear(4, 3, seed=0, dtype="float64"), rng.normal(size=(2, 5, 4))
    distributed = either(TimeDistributed(linear))
    assert_same(both_passes(distributed, x), both_passes(linear, x))


def test_is_the_layer_applied_to_one_step_after_another(either, rng):
    inner = Sequential(Linear(4, 3, seed=0, dtype="float64"), MeanPooling())
    x = rng.normal(size=(2, 5, 6, 4))
    y = either(TimeDistributed(inner))(x)
    assert y.shape == (2, 5, 3)
    for t in range(5):
        np.testing.assert_allclose(y[:, t], inner(x[:, t]), rtol=1e-13)


def test_a_padding_mask_of_steps_does_not_reach_inside(either, rng):
    x, mask = rng.normal(size=(2, 5, 6, 4)), np.zeros((2, 5), dtype=bool)
    layer = either(TimeDistributed(MeanPooling()))
    np.testing.assert_array_equal(layer(x, mask), layer(x))
