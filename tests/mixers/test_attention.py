from unittest.mock import Mock

import numpy as np

import npformer as nf
from npformer import Context
from npformer import functional as F
from npformer.mixers import Attention, BlockwiseAttention, MixerSettings
from npformer.mixers import attention as module
from tests.in_turn import separately
from tests.passes import both_passes


def test_permuting_the_tokens_permutes_the_result(either, rng):
    mixer, x = either(Attention(8, 2, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    order = rng.permutation(5)
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-12)


def test_a_head_is_attention_over_its_own_columns(either, rng):
    mixer, x = either(Attention(8, 2, seed=0, dtype="float64")), rng.normal(size=(1, 5, 8))
    query, key, value = (layer(x)[0] for layer in (mixer.query, mixer.key, mixer.value))
    parts = [[a[:, 4 * i : 4 * i + 4] for a in (query, key, value)] for i in range(2)]
    heads = [F.scaled_dot_product_attention(*part)[0] for part in parts]
    expected = mixer.output(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(mixer(x)[0], expected, rtol=1e-12)


# In blocks ----------------------------------------------------------------------------------------
@separately(("stored", 9, False), ("blocks", 1, True), ("auto", 7, False), ("auto", 8, True))
def test_auto_takes_blocks_for_long_sequences(rng, monkeypatch, memory, length, in_blocks):
    monkeypatch.setattr(module, "LONG", 8)
    blockwise = Mock(wraps=F.blockwise_attention)
    monkeypatch.setattr(F, "blockwise_attention", blockwise)
    mixer = Attention.build(MixerSettings(8, 2, length, memory=memory), seed=0, dtype="float64")
    assert type(mixer) is (BlockwiseAttention if in_blocks else Attention)
    both_passes(mixer, rng.normal(size=(2, length, 8)))
    assert blockwise.called == in_blocks


@separately(
    (Attention, "stored", [8, 9]),
    (Attention, "auto", [8]),
    (BlockwiseAttention, "auto", [8]),
    (BlockwiseAttention, "blocks", []),
)
def test_which_lengths_a_twin_stores_the_weights_of(rng, monkeypatch, kind, memory, lengths):
    monkeypatch.setattr("npformer.engine.cpu.averaging.STORED", 8)
    twin, found = nf.fast(kind(8, 2, memory=memory, seed=0, dtype="float64")), []
    for length in (8, 9):
        _, (heads, *_) = twin.forward(rng.normal(size=(2, length, 8)), Context())
        found += [length] if heads.cache[4][0].stored is not None else []
    assert found == lengths


def test_a_subclass_builds_itself(monkeypatch):
    class Own(Attention):
        pass

    monkeypatch.setattr(module, "LONG", 8)
    assert type(Own.build(MixerSettings(8, 2, 9), seed=0, dtype="float64")) is Own


def test_memory_is_no_part_of_the_weights():
    stored = Attention(8, 2, memory="stored", seed=0)
    blocks = BlockwiseAttention(8, 2, memory="blocks", seed=0)
    assert list(stored.parameters()) == list(blocks.parameters())
    for name, value in stored.parameters().items():
        np.testing.assert_array_equal(blocks.parameters()[name], value)
