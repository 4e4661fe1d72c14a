import numpy as np
import pytest

import npformer as nf
from npformer import Context
from npformer.layers import POOLINGS, EveryToken, FirstToken, Flatten, MeanPooling, Pooler
from tests.passes import both_passes


def test_flatten_lays_tokens_side_by_side(rng):
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(Flatten()(x)[1], np.concatenate([x[1, 0], x[1, 1], x[1, 2]]))


def test_first_token_returns_the_first_token(rng):
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(FirstToken()(x), x[:, 0])


def test_only_the_first_token_gets_a_gradient(rng):
    x = rng.normal(size=(2, 3, 4))
    dy = rng.normal(size=(2, 4))
    _, dx = both_passes(FirstToken(), x, dy=dy)
    np.testing.assert_array_equal(dx[:, 0], dy)
    np.testing.assert_array_equal(dx[:, 1:], 0.0)


def test_every_token_hands_everything_through(rng):
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(EveryToken()(x), x)


@pytest.mark.parametrize("pooling", [MeanPooling, FirstToken, Flatten])
def test_padding_gets_no_gradient(rng, padding, pooling):
    padding[2, 0] = True  # every sequence has a first token
    x = rng.normal(size=(3, 4, 5))
    _, dx = both_passes(pooling(), x, Context(mask=padding))
    np.testing.assert_array_equal(dx[~padding], 0.0)


@pytest.mark.parametrize("pooling", [MeanPooling, FirstToken, Flatten])
def test_values_at_padding_do_not_change_the_output(rng, padding, pooling):
    padding[2, 0] = True  # every sequence has a first token
    x = rng.normal(size=(3, 4, 5))
    layer = pooling()
    y = layer(x, padding)
    x[~padding] = np.resize([np.nan, np.inf, -np.inf], x[~padding].shape)
    np.testing.assert_array_equal(layer(x, padding), y)


def test_the_table_names_every_pooling():
    pooling_types = {name: type(build(4, 0, "float64")) for name, build in POOLINGS.items()}
    expected = {"mean": MeanPooling, "first": FirstToken, "flatten": Flatten, "pooler": Pooler}
    assert pooling_types == expected | {"max": nf.layers.MaxPooling, "none": EveryToken}


def test_the_pooler_is_a_dense_layer_with_tanh_on_the_first_token(either, rng):
    layer = either(Pooler(4, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 3, 4))
    assert list(layer.parameters()) == ["dense.weight", "dense.bias"]
    layer.dense.bias.value[...] = rng.normal(size=4)
    expected = np.tanh(x[:, 0] @ layer.dense.weight.value + layer.dense.bias.value)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-14)
    _, dx, *_ = both_passes(layer, x, dy=np.ones((2, 4)))
    assert (dx[:, 0] != 0.0).all()
    np.testing.assert_array_equal(dx[:, 1:], 0.0)


def test_a_pooler_may_have_another_activation(either, rng):
    pooler = POOLINGS.make("pooler(activation='relu')", 4, 0, "float64")
    layer = either(pooler)
    x = rng.normal(size=(2, 3, 4))
    expected = np.maximum(x[:, 0] @ layer.dense.weight.value, 0.0)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-14)
    with pytest.raises(ValueError, match="activation is 'wild'; expected one of 'relu'"):
        Pooler(4, activation="wild", seed=0)


@pytest.mark.parametrize("shape", [(2, 0, 4), (2, 3), (2, 3, 4, 5)])
def test_a_mean_refuses_other_shapes(shape):
    for pool in (MeanPooling(), nf.fast(MeanPooling())):
        with pytest.raises(ValueError, match="expected"):
            pool.forward(np.ones(shape, "float32"), Context())
