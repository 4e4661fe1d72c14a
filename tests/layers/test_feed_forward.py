import numpy as np
import pytest

from npformer.layers import ACTIVATIONS, PositionwiseFeedForward
from tests.passes import assert_same, both_passes


def network(activation="relu", ffn="linear"):
    return PositionwiseFeedForward(4, 6, activation, ffn=ffn, seed=0, dtype="float64")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_maps_and_convolutions_of_one_seed_agree_bit_for_bit(either, rng, activation):
    x = rng.normal(size=(2, 5, 4))
    of_linear, of_conv1d = (
        both_passes(either(network(activation, ffn=ffn)), x) for ffn in ("linear", "conv1d")
    )
    assert_same(of_conv1d, of_linear)


def test_is_the_papers_equation(either, rng):
    layer = either(network())
    W1, b1, W2, b2 = layer.parameters().values()
    b1[...], b2[...] = rng.normal(size=6), rng.normal(size=4)
    x = rng.normal(size=(2, 5, 4))
    np.testing.assert_allclose(layer(x), np.maximum(0, x @ W1 + b1) @ W2 + b2, rtol=1e-12)
