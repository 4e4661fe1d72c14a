"""Batches of similar length: the same numbers as with all padding, with less of it."""

import numpy as np
import pytest

import npformer as nf
from npformer.core import Padding
from npformer.core.inputs import Sequences
from npformer.data.lengths import LongestFirst, shuffle_by_length

LENGTH = 9


def samples(n=41, per_token=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 20, size=(n, LENGTH))
    lengths = rng.integers(1, LENGTH + 1, size=n)
    mask = np.arange(LENGTH) < lengths[:, None]
    y = rng.integers(0, 3, size=(n, LENGTH) if per_token else n)
    return x, y, mask


def model_of(mixer="attention", pooling="mean", padding="per_length", **more):
    config = nf.EncoderConfig(
        d_model=16,
        n_layers=2,
        n_heads=2,
        d_ff=16,
        max_len=LENGTH,
        mixer=mixer,
        padding=padding,
        **more,
    )
    return nf.SequenceClassifier(config, 3, vocab_size=20, pooling=pooling, seed=1, dtype="float64")


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_an_epoch_has_every_sample_once(n):
    lengths = np.random.default_rng(0).integers(1, 31, size=n)
    order = shuffle_by_length(lengths, 8, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


def test_batches_of_an_epoch_have_little_padding():
    n = 1000
    lengths = np.random.default_rng(0).integers(1, 31, size=n)
    order = shuffle_by_length(lengths, 8, np.random.default_rng(1))
    batches = [lengths[order[start : start + 8]] for start in range(0, n, 8)]
    padded_length = sum(batch.max() * len(batch) for batch in batches)
    assert padded_length < 1.15 * lengths.sum()
    assert 30 * n > 1.8 * lengths.sum()
    mean_lengths = [batch.mean() for batch in batches]
    assert np.abs(np.diff(mean_lengths)).mean() > 5, "they are sorted"


@pytest.mark.parametrize("mixer", list(nf.MIXERS))
@pytest.mark.parametrize("pooling", ["mean", "first", "pooler", "none"])
def test_a_prediction_does_not_depend_on_padding(mixer, pooling):
    x, _, mask = samples()
    model = model_of(mixer, pooling)
    expected = model.loss.probabilities(model(x, mask))
    probabilities = model.predict_probabilities(x, mask, batch_size=4)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12, atol=1e-14)


def test_a_prediction_ignores_padding_wherever_it_is():
    x, _, mask = samples()
    mask[3] = False
    mask[4] = np.arange(LENGTH) == 5
    model = model_of()
    expected = model.loss.probabilities(model(x, mask))
    np.testing.assert_allclose(model.predict_probabilities(x, mask, 4), expected, rtol=1e-12)


def test_batches_of_a_prediction_begin_with_the_longest():
    x, _, mask = samples()
    batches = LongestFirst((Sequences(x, Padding(mask)),), 8, by_length=True)
    lengths = [batch.inputs[0].length for batch in batches.share(0, 1)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < LENGTH


def test_results_of_several_workers_get_the_order_of_the_samples():
    x, _, mask = samples()
    batches = LongestFirst((Sequences(x, Padding(mask)),), 8, by_length=True)
    results = [[batch.inputs[0].x[:, :1] for batch in batches.share(k, 3)] for k in range(3)]
    np.testing.assert_array_equal(batches.restore_order(results), x[:, :1])


def test_a_batch_has_at_most_the_given_number_of_tokens():
    x, _, mask = samples()
    batches = LongestFirst((Sequences(x, Padding(mask)),), 8, by_length=True, tokens=12)
    inputs = [batch.inputs[0] for batch in batches.share(0, 1)]
    sizes = [len(sequences.x) for sequences in inputs]
    for size, sequences in zip(sizes, inputs, strict=True):
        assert size == 1 or size * sequences.length <= 12
    assert max(sizes) <= 8
    assert max(sizes) > 1
    results = [[sequences.x[:, :1] for sequences in inputs]]
    np.testing.assert_array_equal(batches.restore_order(results), x[:, :1])


def test_a_number_of_tokens_limits_batches_without_padding():
    x, _, _ = samples()
    batches = LongestFirst((Sequences(x),), 8, by_length=True, tokens=3 * LENGTH)
    sizes = {len(batch.inputs[0].x) for batch in batches.share(0, 1)}
    assert sizes <= {3, len(x) % 3}
