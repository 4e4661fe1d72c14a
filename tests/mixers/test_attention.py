from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import Context
from npformer import functional as F
from npformer.layers import Linear
from npformer.mixers import Attention, BlockwiseAttention, MixerSettings
from npformer.mixers import attention as module
from tests.engine.users import Scaled
from tests.passes import both_passes


def test_permuting_the_tokens_permutes_the_result(either, rng):
    mixer, x = either(Attention(8, 2, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    order = rng.permutation(5)
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-12)


def test_a_head_is_attention_over_its_own_columns(either, rng):
    mixer, x = either(Attention(8, 2, seed=0, dtype="float64")), rng.normal(size=(1, 5, 8))
    query, key, value = (layer(x)[0] for layer in (mixer.query, mixer.key, mixer.value))
    heads = [
        F.scaled_dot_product_attention(query[:, columns], key[:, columns], value[:, columns])[0]
        for columns in (slice(0, 4), slice(4, 8))
    ]
    expected = mixer.output(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(mixer(x)[0], expected, rtol=1e-12)


# In blocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("masked", [False, True], ids=["full", "padded"])
def test_in_blocks_all_numbers_stay(either, rng, causal, masked):
    x = rng.normal(size=(3, 600, 8))
    mask = np.arange(600) < np.array([600, 290, 0])[:, None] if masked else None
    stored, blocks = (
        kind(8, 2, causal=causal, memory=memory, seed=0, dtype="float64")
        for kind, memory in ((Attention, "stored"), (BlockwiseAttention, "blocks"))
    )
    results = [both_passes(either(mixer), x, Context(mask=mask)) for mixer in (stored, blocks)]
    for one, other in zip(*results, strict=True):
        largest = max(np.abs(one).max(), 1e-2)  # the gradient of the keys' bias is only rounding
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 * largest)


@pytest.mark.parametrize(
    ("memory", "length", "in_blocks"),
    [("stored", 9, False), ("blocks", 1, True), ("auto", 7, False), ("auto", 8, True)],
)
def test_auto_takes_blocks_for_long_sequences(rng, monkeypatch, memory, length, in_blocks):
    monkeypatch.setattr(module, "LONG", 8)
    blockwise = Mock(wraps=F.blockwise_attention)
    monkeypatch.setattr(F, "blockwise_attention", blockwise)
    settings = MixerSettings(8, 2, length, memory=memory)
    mixer = Attention.build(settings, seed=0, dtype="float64")
    assert type(mixer) is (BlockwiseAttention if in_blocks else Attention)
    both_passes(mixer, rng.normal(size=(2, length, 8)))
    assert blockwise.called == in_blocks


@pytest.mark.parametrize(
    ("kind", "memory", "lengths"),
    [
        (Attention, "stored", [8, 9]),
        (Attention, "auto", [8]),
        (BlockwiseAttention, "auto", [8]),
        (BlockwiseAttention, "blocks", []),
    ],
)
def test_which_lengths_a_twin_stores_the_weights_of(rng, monkeypatch, kind, memory, lengths):
    monkeypatch.setattr("npformer.engine.cpu.averaging.STORED", 8)
    twin, found = nf.fast(kind(8, 2, memory=memory, seed=0, dtype="float64")), []
    for length in (8, 9):
        _, (heads, *_) = twin.forward(rng.normal(size=(2, length, 8)), Context())
        kernels_own, _ = heads.cache
        found += [length] if kernels_own[3][0].stored is not None else []
    assert found == lengths


def test_a_subclass_builds_itself(monkeypatch):
    class Own(Attention):
        pass

    monkeypatch.setattr(module, "LONG", 8)
    settings = MixerSettings(8, 2, 9)
    assert type(Own.build(settings, seed=0, dtype="float64")) is Own


def test_memory_is_no_part_of_the_weights():
    stored = Attention(8, 2, memory="stored", seed=0)
    blocks = BlockwiseAttention(8, 2, memory="blocks", seed=0)
    assert list(stored.parameters()) == list(blocks.parameters())
    for name, value in stored.parameters().items():
        np.testing.assert_array_equal(blocks.parameters()[name], value)


# A user's parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["query", "key", "value", "output"])
@pytest.mark.parametrize("kind", [Attention, BlockwiseAttention])
def test_a_part_of_ones_own_runs_in_the_twin_too(rng, padding, kind, part):
    mixer, x = kind(8, 2, seed=0, dtype="float64"), rng.normal(size=(3, 4, 8))
    before = mixer(x, padding)
    setattr(mixer, part, Scaled(8, 8, seed=1, dtype="float64"))
    plain, fast = (both_passes(m, x, Context(mask=padding)) for m in (mixer, nf.fast(mixer)))
    assert np.abs(plain[0] - before).max() > 1e-3
    for one, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 * max(np.abs(one).max(), 1.0))


def test_replacing_a_projection_changes_the_scores(either, rng):
    mixer, x = either(Attention(8, 2, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    mixer.query = Linear(8, 8, seed=1, dtype="float64")
    other = Attention(8, 2, seed=0, dtype="float64")
    for name, parameter in mixer.named_parameters().items():
        other.named_parameters()[name].value[...] = parameter.value
    np.testing.assert_allclose(mixer(x), other(x), rtol=0, atol=1e-13)
