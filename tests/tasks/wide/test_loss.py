"""The loss of a model with a wide part."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from npformer import gradcheck
from npformer.tasks.wide import TwoAnswers

LABELS = np.array([2, 0, 1, 1])
WEIGHTS = np.array([2.0, 0.5, 0.0, 1.0])
CLASSES = (1.0, 3.0, 0.5)


@pytest.fixture
def logits(rng):
    return rng.normal(size=(4, 2, 3))


def defined_loss(z, label_smoothing=0.0, weights=1.0):
    """The mean over samples of (softmax's loss of deep + the mean of the sigmoids' of wide) / 2."""
    q = np.eye(3)[LABELS] * (1.0 - label_smoothing) + label_smoothing / 3
    deep = -(q * log_softmax(z[:, 0], axis=1)).sum(axis=1)
    p = expit(z[:, 1])
    wide = -(q * np.log(p) + (1.0 - q) * np.log(1.0 - p)).mean(axis=1)
    return np.average(0.5 * (deep + wide), weights=weights * np.ones(4))


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_loss_is_as_defined(logits, label_smoothing, weights):
    loss, _ = TwoAnswers(label_smoothing).forward(logits, LABELS, weights)
    expected = defined_loss(logits, label_smoothing, 1.0 if weights is None else weights)
    assert float(loss) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_label_counts_as_often_as_its_class_weighs(logits, weights):
    loss, _ = TwoAnswers(class_weight=CLASSES).forward(logits, LABELS, weights)
    label_weights = np.asarray(CLASSES)[LABELS] * (1.0 if weights is None else weights)
    assert float(loss) == pytest.approx(defined_loss(logits, weights=label_weights), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "class_weight": CLASSES}])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_gradients(logits, options, weights):
    loss = TwoAnswers(**options)
    assert gradcheck((lambda z: loss.forward(z, LABELS, weights), loss.backward), logits).passed


def test_float32_stays(logits):
    loss = TwoAnswers(0.1, CLASSES)
    value, cache = loss.forward(logits.astype("float32"), LABELS, WEIGHTS.astype("float32"))
    assert value.dtype == loss.backward(0.5, cache).dtype == "float32"


def test_probabilities_are_the_softmax_of_the_mean_of_both_logits(logits):
    expected = softmax(logits.mean(axis=1), axis=1)
    np.testing.assert_allclose(TwoAnswers().probabilities(logits), expected)
    np.testing.assert_allclose(np.exp(TwoAnswers().log_probabilities(logits)), expected)
    right = expected[np.arange(4), LABELS]
    assert TwoAnswers().measure(logits, LABELS).total == pytest.approx(-np.log(right).sum())


def test_says_that_it_needs_two_answers():
    with pytest.raises(ValueError, match="Two answers to each sample"):
        TwoAnswers().forward(np.zeros((4, 3)), LABELS)
