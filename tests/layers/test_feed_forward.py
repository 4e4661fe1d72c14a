import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.layers import ACTIVATIONS, GELU, GatedFeedForward, PositionwiseFeedForward
from tests.passes import assert_same, both_passes


def network(activation="relu", ffn="linear"):
    return PositionwiseFeedForward(4, 6, activation, ffn=ffn, seed=0, dtype="float64")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_convolutions_agree_with_linear_maps_of_the_same_seed_bit_for_bit(either, rng, activation):
    x = rng.normal(size=(2, 5, 4))
    networks = (network(activation, ffn=ffn) for ffn in ("linear", "conv1d"))
    of_linear, of_conv1d = (both_passes(either(one), x) for one in networks)
    assert_same(of_conv1d, of_linear)


def test_is_the_papers_equation(either, rng):
    layer = either(network())
    W1, b1, W2, b2 = layer.parameters().values()
    b1[...], b2[...] = rng.normal(size=6), rng.normal(size=4)
    x = rng.normal(size=(2, 5, 4))
    np.testing.assert_allclose(layer(x), np.maximum(0, x @ W1 + b1) @ W2 + b2, rtol=1e-12)


def test_a_gated_network_without_biases_is_the_function(either, rng):
    layer = GatedFeedForward(4, 6, bias=False, seed=0, dtype="float64")
    x = rng.normal(size=(2, 3, 4))
    maps = (layer.gate, layer.up, layer.down)
    expected, _ = F.gated(x, *(linear.weight.value for linear in maps))
    np.testing.assert_allclose(either(layer)(x), expected, rtol=0, atol=1e-14)
    assert sorted(layer.parameters()) == ["down.weight", "gate.weight", "up.weight"]


@pytest.fixture(scope="module")
def gated():
    """Return a language model with gates and RMS norms that learned to count, and its history."""
    config = nf.EncoderConfig(
        d_model=16,
        n_layers=2,
        n_heads=2,
        d_ff=24,
        max_len=12,
        norm_kind="rms",
        norm="pre",
        ffn="gated",
        activation="silu",
        causal=True,
    )
    model = nf.LanguageModel(config, 7, seed=0)
    ids = np.tile(np.arange(1, 7), 2)[None].repeat(8, axis=0)
    data = ids[:, :-1], ids[:, 1:]
    return model, nf.fit(model, data, epochs=60, lr=1e-2, seed=0, progress=False)


def test_a_language_model_with_gates_learns(gated):
    model, history = gated
    assert history.train_loss[-1] < 0.2 * history.train_loss[0]
    assert model.generate(np.array([1, 2]), 8, temperature=0)[:4].tolist() == [3, 4, 5, 6]


def test_a_language_model_with_gates_writes_the_same_with_a_cache(gated):
    model, _ = gated
    with_cache = model.generate(np.array([1, 2]), 8, temperature=0)
    without = model.generate(np.array([1, 2]), 8, temperature=0, cache=False)
    np.testing.assert_array_equal(with_cache, without)


FUNCTIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": F.tanh}
FUNCTIONS["gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")


def test_every_name_has_its_function_here():
    assert set(FUNCTIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_stands_for_its_function(either, rng, name):
    x = rng.normal(size=(2, 3))
    np.testing.assert_array_equal(either(ACTIVATIONS[name]())(x), FUNCTIONS[name](x)[0])


def test_gelu_heeds_which_form_is_asked_for(rng):
    x = rng.normal(size=9)
    assert (GELU()(x) != GELU(approximate="tanh")(x)).any()
