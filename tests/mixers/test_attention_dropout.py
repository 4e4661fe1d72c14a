"""Dropout of whole tokens, of attention weights, and inside the feed-forward network."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.mixers import BlockwiseAttention
from tests.needs import NEEDS

RATES = ("dropout", "token_dropout", "attention_dropout", "ffn_dropout")


def model(**changes):
    settings = dict(zip(RATES, (0.1, 0.2, 0.3, 0.2), strict=True)) | changes
    config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=16, max_len=7, **settings)
    return nf.SequenceClassifier(config, 3, n_features=4, dtype="float64", seed=1)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    mask = np.arange(7) < rng.integers(0, 8, 6)[:, None]
    return rng.normal(size=(6, 7, 4)), rng.integers(0, 3, 6), mask


@pytest.mark.parametrize("rate", RATES)
def test_each_of_them_acts_in_training_alone(data, rate):
    rates = dict.fromkeys(RATES, 0.0)
    off, on = model(**rates), model(**rates | {rate: 0.4})
    np.testing.assert_array_equal(on(data[0], data[2]), off(data[0], data[2]))
    assert on.loss_and_gradients(*data, seed=0)[0] != off.loss_and_gradients(*data)[0]
    with pytest.raises(ValueError, match="generator"):
        on.loss_and_gradients(*data)


def test_samples_with_the_same_scores_drop_different_weights():
    scores = np.zeros((2, 4, 4))
    value = np.ones((3, 2, 4, 5))
    y, _ = F.average(scores, value, rate=0.5, generator=np.random.default_rng(0))
    assert not np.array_equal(y[0], y[1])
    y, _ = F.average(scores, np.ones((4000, 2, 4, 5)), rate=0.5, generator=np.random.default_rng(0))
    np.testing.assert_allclose(y.mean(), 1.0, atol=0.01)


@pytest.mark.slow
def test_it_is_pytorchs_attention_with_the_same_mask():
    torch = pytest.importorskip("torch", reason=NEEDS["torch"])
    rng = np.random.default_rng(0)
    scores, value = rng.normal(size=(3, 2, 5, 5)), rng.normal(size=(3, 2, 5, 4))
    dy = rng.normal(size=value.shape)
    y, cache = F.average(scores, value, rate=0.4, generator=np.random.default_rng(7))
    dscores, dvalue = F.average_backward(dy, cache)
    dropout_factors, _ = F.dropout(np.ones((3, 2, 5, 5)), 0.4, np.random.default_rng(7))
    s, v = (torch.tensor(a, requires_grad=True) for a in (scores, value))
    expected = (torch.softmax(s, -1) * torch.tensor(dropout_factors)) @ v
    expected.backward(torch.tensor(dy))
    for ours, theirs in ((y, expected.detach()), (dscores, s.grad), (dvalue, v.grad)):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12, atol=1e-14)


def test_attention_in_blocks_refuses_it():
    with pytest.raises(ValueError, match=r"attention_dropout is 0\.1 and memory is 'blocks'"):
        model(memory="blocks", attention_dropout=0.1)
    with pytest.raises(ValueError, match="memory is 'blocks'"):
        BlockwiseAttention(8, 2, attention_dropout=0.1, seed=0)
    config = nf.EncoderConfig(d_model=8, n_heads=2, max_len=4096, attention_dropout=0.1)
    mixer = nf.Encoder(config).blocks[0].mixer
    assert type(mixer) is nf.mixers.GeneralAttention
    assert mixer.attention_dropout == 0.1


def test_a_mixer_without_weights_refuses_it():
    with pytest.raises(ValueError, match=r"attention_dropout is 0.1 and fourier, fourier has no"):
        nf.EncoderConfig(mixer="fourier", attention_dropout=0.1)
    mixed = nf.EncoderConfig(mixer=("fourier", "attention"), attention_dropout=0.1)
    assert mixed.attention_dropout == 0.1


def test_a_mixer_of_ones_own_need_not_know_of_it():
    class Own(nf.mixers.GeneralAttention):
        def __init__(self, d_model, n_heads=1, *, causal, memory, initializer, seed, dtype):
            super().__init__(
                d_model,
                n_heads,
                causal=causal,
                memory=memory,
                initializer=initializer,
                seed=seed,
                dtype=dtype,
            )

    settings = nf.mixers.MixerSettings(8, 2, 7)
    assert Own.build(settings, seed=0, dtype="float64").attention_dropout == 0.0


def test_an_attention_of_ones_own_need_not_know_of_a_bias():
    class Own(nf.mixers.Attention):
        def __init__(self, d_model, n_heads, *, causal, initializer, seed, dtype):
            super().__init__(d_model, n_heads, causal=causal, seed=seed, dtype=dtype)

    settings = nf.mixers.MixerSettings(8, 2, 7, causal=True)
    assert Own.build(settings, seed=0, dtype="float64").causal
