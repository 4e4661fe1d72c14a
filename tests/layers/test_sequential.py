import numpy as np

from npformer import Context, Gradients
from npformer.layers import Dropout, Linear, Sequential, Tanh


def test_is_the_composition(either, rng):
    f, g, x = Linear(4, 6, seed=0, dtype="float64"), Tanh(), rng.normal(size=(3, 4))
    np.testing.assert_array_equal(either(Sequential(f, g))(x), g(f(x)))


def test_a_layer_at_two_places_collects_both_gradients(either, rng):
    tied = Linear(4, 4, seed=0, dtype="float64")
    copies = [Linear(4, 4, seed=0, dtype="float64") for _ in range(2)]
    x, dy = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))

    def weight_gradients(chain):
        _, cache = chain.forward(x, Context())
        gradients = Gradients(chain)
        chain.backward(dy, cache, gradients)
        return [g for name, g in gradients.items() if name.endswith("weight")]

    (both,) = weight_gradients(either(Sequential(tied, Tanh(), tied)))
    first, second = weight_gradients(either(Sequential(copies[0], Tanh(), copies[1])))

    np.testing.assert_allclose(both, first + second, rtol=1e-13)


def test_the_context_reaches_every_layer(either, rng):
    x = rng.normal(size=(50, 4))
    context = Context(training=True, generator=np.random.default_rng(0))
    y, _ = either(Sequential(Tanh(), Sequential(Dropout(0.5)))).forward(x, context)
    assert 0.3 < (y == 0.0).mean() < 0.7
