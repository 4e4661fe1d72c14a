import numpy as np

from npformer import Context
from npformer.layers import Dropout, Linear, Sequential, Tanh
from tests.passes import both_passes


def test_is_the_composition(either, rng):
    f, g, x = Linear(4, 6, seed=0, dtype="float64"), Tanh(), rng.normal(size=(3, 4))
    dy, W = rng.normal(size=(3, 6)), f.weight.value
    y, dx, dW, _ = both_passes(either(Sequential(f, g)), x, dy=dy)
    np.testing.assert_array_equal(y, g(f(x)))
    dbefore = dy * (1.0 - y * y)
    np.testing.assert_allclose(dx, dbefore @ W.T, rtol=1e-12)
    np.testing.assert_allclose(dW, x.T @ dbefore, rtol=1e-12)


def test_a_layer_at_two_places_collects_both_gradients(either, rng):
    tied = Linear(4, 4, seed=0, dtype="float64")
    one, other = (Linear(4, 4, seed=0, dtype="float64") for _ in range(2))
    x = rng.normal(size=(3, 4))
    _, _, both, _ = both_passes(either(Sequential(tied, Tanh(), tied)), x)
    _, _, first, _, second, _ = both_passes(either(Sequential(one, Tanh(), other)), x)
    np.testing.assert_allclose(both, first + second, rtol=1e-13)


def test_the_context_reaches_every_layer(either, rng):
    x = rng.normal(size=(50, 4))
    context = Context(training=True, generator=np.random.default_rng(0))
    y, _ = either(Sequential(Tanh(), Sequential(Dropout(0.5)))).forward(x, context)
    assert 0.3 < (y == 0.0).mean() < 0.7
