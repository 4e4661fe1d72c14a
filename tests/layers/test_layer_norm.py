import numpy as np

from npformer import functional as F
from npformer.layers import LayerNorm


def test_begins_as_a_plain_normalisation(either, rng):
    y = either(LayerNorm(16, dtype="float64"))(rng.normal(2.0, 3.0, size=(4, 16)))
    np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-14)
    np.testing.assert_allclose(y.std(axis=-1), 1.0, rtol=1e-4)


def test_epsilon_reaches_the_function(either, rng):
    x = rng.normal(size=(4, 16))
    y, _ = F.layer_norm(x, np.ones(16), np.zeros(16), eps=0.7)
    np.testing.assert_allclose(either(LayerNorm(16, eps=0.7, dtype="float64"))(x), y, rtol=1e-13)


def test_two_layer_norms_share_nothing():
    one, other = LayerNorm(4), LayerNorm(4)
    one.gamma.value[...] = 5.0
    np.testing.assert_array_equal(other.gamma.value, 1.0)
