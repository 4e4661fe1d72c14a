import numpy as np
import pytest

from npformer import Context, Gradients
from npformer.layers import Dropout, Sequential


@pytest.fixture
def training():
    return Context(training=True, generator=np.random.default_rng(0))


def test_nothing_happens_at_evaluation_or_at_rate_0(either, rng):
    layer = either(Dropout(0.5))
    x = rng.normal(size=(4, 5))
    y, cache = layer.forward(x, Context(training=False, generator=np.random.default_rng(0)))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(layer.backward(x, cache, Gradients(layer)), x)
    x = rng.normal(size=(4, 5))
    np.testing.assert_array_equal(either(Dropout(0.0)).forward(x, Context(training=True))[0], x)


def test_applied_twice_each_use_has_a_mask_of_its_own(either, training):
    layer = either(Dropout(0.5))
    ones = np.ones((16, 16))
    gradients = Gradients(Dropout(0.5))
    first, first_cache = layer.forward(ones, training)
    second, second_cache = layer.forward(ones, training)
    assert abs(((first > 0) & (second > 0)).mean() - 0.25) < 0.1
    np.testing.assert_array_equal(layer.backward(ones, second_cache, gradients), second)
    np.testing.assert_array_equal(layer.backward(ones, first_cache, gradients), first)


def test_twice_in_a_chain_drops_what_either_drops(either, training):
    layer = Dropout(0.5)
    chain = either(Sequential(layer, layer))
    y, cache = chain.forward(np.ones((64, 64)), training)
    assert set(np.unique(y)) == {0.0, 4.0}
    assert abs((y > 0).mean() - 0.25) < 0.05
    np.testing.assert_array_equal(chain.backward(np.ones((64, 64)), cache, Gradients(chain)), y)


def test_a_numpy_rate_is_a_rate():
    assert "0.25" in repr(Dropout(np.float32(0.25)))
