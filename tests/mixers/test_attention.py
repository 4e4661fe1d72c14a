from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import Context
from npformer import functional as F
from npformer.mixers import Attention, BlockwiseAttention, GeneralAttention, MixerSettings
from npformer.mixers import general_attention as module
from tests.passes import both_passes


def test_permuting_the_tokens_permutes_the_result(either, rng):
    mixer = either(Attention(8, 2, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 8))
    order = rng.permutation(5)
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-12)


def test_a_head_is_attention_over_its_own_columns(either, rng):
    mixer = either(Attention(8, 2, seed=0, dtype="float64"))
    x = rng.normal(size=(1, 5, 8))
    query, key, value = (layer(x)[0] for layer in (mixer.query, mixer.key, mixer.value))
    columns_of_heads = [[a[:, 4 * i : 4 * i + 4] for a in (query, key, value)] for i in range(2)]
    heads = [F.scaled_dot_product_attention(*columns)[0] for columns in columns_of_heads]
    expected = mixer.output(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(mixer(x)[0], expected, rtol=1e-12)


# In blocks ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("memory", "length", "is_blockwise"),
    [("stored", 9, False), ("blocks", 1, True), ("auto", 7, False), ("auto", 8, True)],
)
def test_auto_takes_blocks_for_long_sequences(rng, monkeypatch, memory, length, is_blockwise):
    monkeypatch.setattr(module, "BLOCKWISE_FROM_LENGTH", 8)
    blockwise = Mock(wraps=F.blockwise_attention)
    monkeypatch.setattr(F, "blockwise_attention", blockwise)
    settings = MixerSettings(8, 2, length, memory=memory)
    mixer = nf.MIXERS["attention"].build(settings, seed=0, dtype="float64")
    plain_class = GeneralAttention if memory == "stored" else Attention
    assert type(mixer) is (BlockwiseAttention if is_blockwise else plain_class)
    both_passes(mixer, rng.normal(size=(2, length, 8)))
    assert blockwise.called == is_blockwise


@pytest.mark.parametrize(
    ("kind", "memory", "lengths"),
    [
        (GeneralAttention, "stored", [8, 9]),
        (GeneralAttention, "auto", [8]),
        (BlockwiseAttention, "auto", [8]),
        (BlockwiseAttention, "blocks", []),
    ],
)
def test_which_lengths_a_twin_stores_the_weights_of(rng, monkeypatch, kind, memory, lengths):
    monkeypatch.setattr("npformer.engine.cpu.averaging.STORED", 8)
    twin = nf.fast(kind(8, 2, memory=memory, seed=0, dtype="float64"))
    stored_lengths = []
    for length in (8, 9):
        _, (heads, *_) = twin.forward(rng.normal(size=(2, length, 8)), Context())
        stored_lengths += [length] if heads.cache[4][0].stored is not None else []
    assert stored_lengths == lengths


def test_a_subclass_builds_itself(monkeypatch):
    class Own(GeneralAttention):
        pass

    monkeypatch.setattr(module, "BLOCKWISE_FROM_LENGTH", 8)
    assert type(Own.build(MixerSettings(8, 2, 9), seed=0, dtype="float64")) is Own


@pytest.mark.parametrize(
    "settings",
    [
        {"attention_dropout": 0.1},
        {"rope_theta": 100.0},
        {"n_kv_heads": 1},
        {"d_head": 6},
        {"window": 3},
        {"qk_norm": True},
    ],
)
def test_a_setting_that_asks_for_more_builds_the_general_class(settings):
    asking = MixerSettings(8, 2, 9, **settings)
    mixer = nf.MIXERS["attention"].build(asking, seed=0, dtype="float64")
    assert type(mixer) is GeneralAttention

    class Own(Attention):
        pass

    (name,) = settings
    message = f"{name} is set and Own derives from Attention, which has no such option"
    with pytest.raises(ValueError, match=message):
        Own.build(asking, seed=0, dtype="float64")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_general_class_without_options_is_the_plain_one(rng, causal, bias):
    settings = {"causal": causal, "bias": bias, "seed": 0, "dtype": "float64"}
    plain = Attention(8, 2, **settings)
    general = GeneralAttention(8, 2, **settings)
    assert list(plain.parameters()) == list(general.parameters())
    for name, value in plain.parameters().items():
        np.testing.assert_array_equal(general.parameters()[name], value)
    x = rng.normal(size=(3, 5, 8))
    mask = np.arange(5) < np.array([[5], [3], [0]])
    context = Context(mask=mask)
    y, cache = plain.forward(x, context)
    same, same_cache = general.forward(x, context)
    np.testing.assert_array_equal(y, same)
    gradients, same_gradients = nf.Gradients(plain), nf.Gradients(general)
    dx = plain.backward(y, cache, gradients)
    np.testing.assert_array_equal(dx, general.backward(y, same_cache, same_gradients))
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(gradient, same_gradients[name])


def test_memory_is_no_part_of_the_weights():
    stored = GeneralAttention(8, 2, memory="stored", seed=0)
    blocks = BlockwiseAttention(8, 2, memory="blocks", seed=0)
    assert list(stored.parameters()) == list(blocks.parameters())
    for name, value in stored.parameters().items():
        np.testing.assert_array_equal(blocks.parameters()[name], value)
