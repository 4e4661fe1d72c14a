"""Temperatures: probabilities that are too sure are found out on samples held out."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import frequent_pairs
from npformer.tasks.estimators.calibration import calibrate, factors
from npformer.tasks.estimators.scores import calibration_error
from npformer.training.trainable import WideSequenceClassifier

WORDS = np.array([[2, 3, 2, 3], [4, 6, 1, 5], [3, 2, 0, 0], [5, 5, 5, 0]])
CONFIG = nf.EncoderConfig(d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=4)


def loss(probabilities, y):
    return -np.log(probabilities[np.arange(len(y)), y]).mean()


def drawn(n=4000, n_classes=3):
    """Return logits, and labels that are drawn from their softmax."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, n_classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return z, p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.mark.parametrize("too_sure", [0.4, 2.5])
def test_the_temperature_is_found(too_sure):
    z, _, y = drawn()
    assert factors(too_sure * z[:, None], y) == pytest.approx(1 / too_sure, 0.08)


def test_two_answers_count_as_much_as_they_are_right():
    z, _, y = drawn()
    noise = np.random.default_rng(1).normal(size=z.shape)
    found = factors(np.stack([noise, z], axis=1), y)  # the labels are drawn from the second
    alone = factors(z[:, None], y)[0]
    np.testing.assert_allclose(found, [0.01, 2.0 * alone], rtol=1e-3)  # the least allowed
    np.testing.assert_array_equal(factors(np.stack([z, -z], axis=1), y)[1], 0.01)


def test_the_error_is_that_of_the_confidence():
    _, p, y = drawn()
    right, sure = p.argmax(axis=1) == y, p.max(axis=1)
    assert calibration_error(right, sure) < 0.03
    assert calibration_error(right, np.ones(len(y))) == pytest.approx(1 - right.mean())
    assert calibration_error(np.array([True, False]), np.array([1.0, 1.0]), 1) == 0.5
    # Who gives one answer to all is as sure as it is right, in whatever order the samples come.
    assert calibration_error(np.arange(40) < 20, np.full(40, 0.5)) == 0.0


@pytest.mark.parametrize("wide", [False, True])
def test_a_model_that_is_too_sure_is_cooled(wide):
    rng, sizes = np.random.default_rng(0), {"vocab_size": 7, "dtype": "float64"}
    model = nf.SequenceClassifier(CONFIG, 2, **sizes)
    if wide:
        model = WideSequenceClassifier(CONFIG, 2, n_pairs=2, **sizes)
        model.wide.learn(*frequent_pairs([[2, 3], [3, 2]], 7))
        model.wide.weight.value[...] = rng.normal(size=(9, 2))
    model.classify.weight.value[...] *= 8.0
    x, mask = np.tile(WORDS, (100, 1)), np.tile(WORDS > 0, (100, 1))
    before, y = model.predict_probabilities(x, mask), rng.integers(0, 2, len(x))  # by chance
    calibrate(model, (x, y, mask))
    after = model.predict_probabilities(x, mask)
    assert loss(before, y) > 0.8
    assert loss(after, y) < np.log(2) + 0.01
    np.testing.assert_array_equal(model.encoder.blocks[0].mixer_norm.gamma.value, 1.0)
