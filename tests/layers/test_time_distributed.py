import numpy as np

from npformer import Context, Gradients
from npformer.layers import Linear, MeanPooling, Sequential, TimeDistributed


def test_a_time_distributed_linear_layer_is_a_linear_layer(either, rng):
    linear = Linear(4, 3, seed=0, dtype="float64")
    x, dy = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3))
    results = []
    for layer in (linear, either(TimeDistributed(linear))):
        y, cache = layer.forward(x, Context())
        gradients = Gradients(layer)
        results.append((y, layer.backward(dy, cache, gradients), *gradients.values()))
    for alone, distributed in zip(*results, strict=True):
        np.testing.assert_array_equal(distributed, alone)


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
