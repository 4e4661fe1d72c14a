import numpy as np

from npformer import Context, Layer, layers
from tests.passes import assert_same, both_passes


def test_is_the_composition(either, rng):
    f = layers.Linear(4, 6, seed=0, dtype="float64")
    g = layers.Tanh()
    x = rng.normal(size=(3, 4))
    dy = rng.normal(size=(3, 6))
    W = f.weight.value
    y, dx, dW, _ = both_passes(either(layers.Sequential(f, g)), x, dy=dy)
    np.testing.assert_array_equal(y, g(f(x)))
    dbefore = dy * (1.0 - y * y)
    np.testing.assert_allclose(dx, dbefore @ W.T, rtol=1e-12)
    np.testing.assert_allclose(dW, x.T @ dbefore, rtol=1e-12)


def test_a_layer_at_two_places_collects_both_gradients(either, rng):
    tied = layers.Linear(4, 4, seed=0, dtype="float64")
    one, other = (layers.Linear(4, 4, seed=0, dtype="float64") for _ in range(2))
    x = rng.normal(size=(3, 4))
    _, _, dtied, _ = both_passes(either(layers.Sequential(tied, layers.Tanh(), tied)), x)
    _, _, first, _, second, _ = both_passes(either(layers.Sequential(one, layers.Tanh(), other)), x)
    np.testing.assert_allclose(dtied, first + second, rtol=1e-13)


def test_the_context_reaches_every_layer(either, rng):
    x = rng.normal(size=(50, 4))
    context = Context(training=True, generator=np.random.default_rng(0))
    y, _ = either(layers.Sequential(layers.Tanh(), layers.Sequential(layers.Dropout(0.5)))).forward(
        x, context
    )
    assert 0.3 < (y == 0.0).mean() < 0.7


def test_a_time_distributed_linear_layer_is_a_linear_layer(either, rng):
    linear = layers.Linear(4, 3, seed=0, dtype="float64")
    x = rng.normal(size=(2, 5, 4))
    assert_same(both_passes(either(layers.TimeDistributed(linear)), x), both_passes(linear, x))


def test_is_the_layer_applied_to_one_step_after_another(either, rng):
    inner = layers.Sequential(layers.Linear(4, 3, seed=0, dtype="float64"), layers.MeanPooling())
    x = rng.normal(size=(2, 5, 6, 4))
    y = either(layers.TimeDistributed(inner))(x)
    assert y.shape == (2, 5, 3)
    for t in range(5):
        np.testing.assert_allclose(y[:, t], inner(x[:, t]), rtol=1e-13)


def test_a_padding_mask_of_steps_does_not_reach_inside(either, rng):
    x = rng.normal(size=(2, 5, 6, 4))
    mask = np.zeros((2, 5), dtype=bool)
    layer = either(layers.TimeDistributed(layers.MeanPooling()))
    np.testing.assert_array_equal(layer(x, mask), layer(x))


def test_gradients_reach_an_embedding_inside(either, rng):
    table = layers.Embedding(7, 3, scale=True, seed=0, dtype="float64")
    ids = rng.integers(0, 7, (2, 5, 4))
    dy = rng.normal(size=(2, 5, 4, 3))
    y, dx, dtable = both_passes(either(layers.TimeDistributed(table)), ids, dy=dy)
    np.testing.assert_array_equal(y, table(ids))
    assert dx is None
    expected = np.zeros((7, 3))
    np.add.at(expected, ids, table.scale * dy)
    np.testing.assert_allclose(dtable, expected, rtol=1e-13)


def test_neither_the_mask_nor_the_types_of_steps_reach_inside(either, rng):
    class Noting(Layer):
        def forward(self, x, context):
            contexts.append((context.mask, context.types, context.training))
            return x, None

    contexts = []
    marks = np.zeros((2, 5), dtype="int64")
    layer = either(layers.TimeDistributed(Noting()))
    x = rng.normal(size=(2, 5, 4))
    for options in ({"types": marks}, {"mask": marks == 0}, {"mask": marks == 0, "types": marks}):
        layer.forward(x, Context(training=True, **options))
    assert contexts == [(None, None, True)] * 3
