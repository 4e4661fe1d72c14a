"""Batches of similar length: the same numbers as with all the padding, in less of it."""

import numpy as np
import pytest

import npformer as nf
from npformer.core import Padding
from npformer.core.inputs import Sequences
from npformer.data.lengths import LongestFirst, shuffle_by_length

SKIP = list(nf.MIXERS)
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
def test_an_epoch_has_every_sample_once_and_its_batches_little_padding(n):
    lengths = np.random.default_rng(0).integers(1, 31, size=n)
    order = shuffle_by_length(lengths, 8, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    batches = [lengths[order[start : start + 8]] for start in range(0, n, 8)]
    padded = sum(batch.max() * len(batch) for batch in batches)
    if n == 1000:
        assert padded < 1.15 * lengths.sum()
        assert 30 * n > 1.8 * lengths.sum()
        assert np.abs(np.diff([batch.mean() for batch in batches])).mean() > 5, "they are sorted"


@pytest.mark.parametrize("mixer", SKIP)
@pytest.mark.parametrize(
    "pooling",
    [
        "mean",
        "first",
        "pooler",
        "none",
    ],
)
def test_a_prediction_is_that_of_all_the_padding(mixer, pooling):
    x, _, mask = samples()
    model = model_of(mixer, pooling)
    whole = model.loss.probabilities(model(x, mask))
    found = model.predict_probabilities(x, mask, batch_size=4)
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-14)


def test_a_mask_with_holes_and_a_row_without_tokens():
    x, _, mask = samples()
    mask[3] = False
    mask[4] = np.arange(LENGTH) == 5
    model = model_of()
    whole = model.loss.probabilities(model(x, mask))
    np.testing.assert_allclose(model.predict_probabilities(x, mask, 4), whole, rtol=1e-12)


def test_batches_of_a_prediction_are_the_longest_first_and_of_the_size_asked_for():
    x, _, mask = samples()
    batches = LongestFirst((Sequences(x, Padding(mask)),), 8, by_length=True)
    shapes = [part.inputs[0].length for part in batches.share(0, 1)]
    assert shapes == sorted(shapes, reverse=True)
    assert shapes[-1] < LENGTH
    shares = [[part.inputs[0].x[:, :1] for part in batches.share(k, 3)] for k in range(3)]
    np.testing.assert_array_equal(batches.restore_order(shares), x[:, :1])
    batches = LongestFirst((Sequences(x, Padding(mask)),), 8, by_length=True, tokens=12)
    parts = [part.inputs[0] for part in batches.share(0, 1)]
    assert all(len(part.x) == 1 or len(part.x) * part.length <= 12 for part in parts)
    assert all(len(part.x) <= 8 for part in parts)
    assert max(len(part.x) for part in parts) > 1
    np.testing.assert_array_equal(
        batches.restore_order([[part.x[:, :1] for part in parts]]), x[:, :1]
    )
    whole = LongestFirst((Sequences(x),), 8, by_length=True, tokens=3 * LENGTH)
    assert {len(part.inputs[0].x) for part in whole.share(0, 1)} <= {3, len(x) % 3}
