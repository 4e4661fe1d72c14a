import numpy as np

from npformer import Context, Layer
from npformer.layers import Embedding, Linear, MeanPooling, Sequential, TimeDistributed
from tests.passes import assert_same, both_passes


def test_a_time_distributed_linear_layer_is_a_linear_layer(either, rng):
    linear, x = Linear(4, 3, seed=0, dtype="float64"), rng.normal(size=(2, 5, 4))
    assert_same(both_passes(either(TimeDistributed(linear)), x), both_passes(linear, x))


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


def test_gradients_reach_an_embedding_inside(either, rng):
    table = Embedding(7, 3, scale=True, seed=0, dtype="float64")
    ids, dy = rng.integers(0, 7, (2, 5, 4)), rng.normal(size=(2, 5, 4, 3))
    y, dx, dtable = both_passes(either(TimeDistributed(table)), ids, dy=dy)
    np.testing.assert_array_equal(y, table(ids))
    assert dx is None
    expected = np.zeros((7, 3))
    np.add.at(expected, ids, table.scale * dy)
    np.testing.assert_allclose(dtable, expected, rtol=1e-13)


def test_neither_the_mask_nor_the_types_of_steps_reach_inside(either, rng):
    class Noting(Layer):
        def forward(self, x, context):
            seen.append((context.mask, context.types, context.training))
            return x, None

    seen, marks = [], np.zeros((2, 5), dtype="int64")
    layer, x = either(TimeDistributed(Noting())), rng.normal(size=(2, 5, 4))
    for given in ({"types": marks}, {"mask": marks == 0}, {"mask": marks == 0, "types": marks}):
        layer.forward(x, Context(training=True, **given))
    assert seen == [(None, None, True)] * 3
