import numpy as np
import pytest

import npformer as nf
from npformer import Context, Gradients
from npformer import functional as F
from npformer.mixers import Attention
from npformer.mixers import attention as module


def test_permuting_the_tokens_permutes_the_result(rng):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(2, 5, 8))
    order = rng.permutation(5)
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-12)


def test_a_single_token_is_its_own_value(rng):
    mixer, x = Attention(8, 4, seed=0, dtype="float64"), rng.normal(size=(2, 1, 8))
    np.testing.assert_allclose(mixer(x), mixer.output(mixer.value(x)), rtol=1e-13)


def test_equal_tokens_stay_equal(rng):
    mixer = Attention(8, 2, seed=0, dtype="float64")
    y = mixer(np.tile(rng.normal(size=8), (1, 5, 1)))
    np.testing.assert_allclose(y, np.tile(y[:, :1], (1, 5, 1)), rtol=1e-13)


def test_a_head_is_attention_over_its_own_columns(rng):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(1, 5, 8))
    query, key, value = (
        layer(x)[0] for layer in (mixer.scores.query, mixer.scores.key, mixer.value)
    )
    heads = []
    for columns in (slice(0, 4), slice(4, 8)):
        scores = np.exp(query[:, columns] @ key[:, columns].T / 2.0)
        heads.append(scores / scores.sum(axis=-1, keepdims=True) @ value[:, columns])
    by_hand = mixer.output(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(mixer(x)[0], by_hand, rtol=1e-12)


def test_a_sequence_of_padding_alone_attends_to_nothing(rng, padding):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(3, 4, 8))
    mixer.output.bias.value[...] = rng.normal(size=8)
    np.testing.assert_array_equal(mixer(x, padding)[2], np.tile(mixer.output.bias.value, (4, 1)))


# In blocks ----------------------------------------------------------------------------------------


def everything(mixer, x, mask):
    """Return y, dx and the parameters' gradients."""
    y, cache = mixer.forward(x, Context(mask=mask))
    gradients = Gradients(mixer)
    dx = mixer.backward(np.cos(np.arange(y.size)).reshape(y.shape), cache, gradients)
    return [y, dx, *gradients.values()]


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("masked", [False, True], ids=["full", "padded"])
def test_in_blocks_all_numbers_stay(rng, causal, masked):
    x = rng.normal(size=(3, 600, 8))
    mask = np.arange(600) < np.array([600, 290, 0])[:, None] if masked else None
    stored, blocks = (
        everything(Attention(8, 2, causal=causal, memory=way, seed=0, dtype="float64"), x, mask)
        for way in ("stored", "blocks")
    )
    for one, other in zip(stored, blocks, strict=True):
        largest = max(
            np.abs(one).max(), 1e-2
        )  # the gradient of the keys' bias is 0 but for rounding
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 * largest)


@pytest.mark.parametrize(
    ("memory", "length", "in_blocks"),
    [
        ("stored", 9, False),
        ("blocks", 1, True),
        ("auto", 7, False),
        ("auto", 8, True),
    ],
)
def test_auto_takes_blocks_for_long_sequences(rng, monkeypatch, memory, length, in_blocks):
    monkeypatch.setattr(module, "LONG", 8)
    taken = []
    blockwise = F.blockwise_attention
    monkeypatch.setattr(
        F, "blockwise_attention", lambda *a, **k: [taken.append(1), blockwise(*a, **k)][1]
    )
    mixer = Attention(8, 2, memory=memory, seed=0, dtype="float64")
    with nf.use_kernels(False):
        everything(mixer, rng.normal(size=(2, length, 8)), None)
    assert bool(taken) == in_blocks


def test_memory_is_no_part_of_the_weights():
    stored, blocks = (Attention(8, 2, memory=way, seed=0) for way in ("stored", "blocks"))
    for name, value in stored.parameters().items():
        np.testing.assert_array_equal(blocks.parameters()[name], value)
