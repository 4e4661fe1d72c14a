"""Softmax cross-entropy by a kernel: labels and logits at the edge, and when it is used."""

import math

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext, fast_losses
from npformer.engine.cpu import KERNELS, losses
from npformer.models.losses import SoftmaxCrossEntropy
from tests.kernels import helpers
from tests.kernels.cpu.helpers import assert_parity
from tests.kernels.helpers import Case

LOGITS = 5.0 * np.random.default_rng(0).normal(size=(2, 3, 4))
LABELS = np.array([[0, 1, 3], [2, 2, 0]])
HUGE = np.array([[1e4, -1e4, 1e4 - 1.0], [-1e38, 0.0, 1e38]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("sizes", [(1, 2), (1, 700), (7, 3), (7, 2100), (1500, 2), (3, 2, 5)])
def test_sizes(sizes, smoothing):
    assert_parity(helpers.cross_entropy(sizes, smoothing))


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        *((LOGITS, LABELS.astype(kind)) for kind in ("int32", "int8", "uint8")),
        (LOGITS, np.full_like(LABELS, F.NO_LABEL)),
        (LOGITS[:0], LABELS[:0]),
        (HUGE, np.array([2, 2])),
        (np.array([1.0, 2.0]), np.array(1)),
    ],
)
def test_any_labels_and_logits(logits, labels):
    assert_parity(Case("softmax_cross_entropy", (logits,), (labels,)))


def passes(logits, labels, smoothing=0.0, dloss=1.0):
    """Return the loss and its gradient."""
    loss, cache = losses.softmax_cross_entropy(logits, labels, smoothing, context=EngineContext())
    return loss, losses.softmax_cross_entropy_backward(dloss, cache)


def test_a_class_that_is_ruled_out_has_a_loss_for_the_others():
    loss, dlogits = passes(np.array([[0.0, -np.inf, 0.0]]), np.array([2]))
    np.testing.assert_allclose(loss, math.log(2.0))
    np.testing.assert_allclose(dlogits, [[0.5, 0.0, -0.5]])
    assert passes(np.array([[0.0, -np.inf, 0.0]]), np.array([2]), 0.1)[0] == np.inf


ONE_ROW_OF_NAN = np.array([[0.0, 0.0, 0.0], [np.nan, np.nan, np.nan]])


def test_logits_without_a_label_may_be_anything():
    loss, dlogits = passes(ONE_ROW_OF_NAN.copy(), np.array([0, F.NO_LABEL]))
    np.testing.assert_allclose(loss, math.log(3.0))
    np.testing.assert_array_equal(dlogits[1], 0.0)


def test_a_loss_shows_nan_in_logits_with_a_label():
    assert np.isnan(passes(ONE_ROW_OF_NAN.copy(), np.array([0, 1]))[0])


@pytest.mark.parametrize("dloss", [np.float64(0.25), np.array(0.25)])
def test_the_gradient_of_a_loss_is_a_number_of_any_kind(dloss):
    logits = LOGITS.astype("float32")
    dlogits = passes(logits, LABELS, dloss=dloss)[1]
    assert dlogits.dtype == "float32"
    np.testing.assert_array_equal(dlogits, passes(logits, LABELS, dloss=0.25)[1])


@pytest.mark.parametrize("labels", [LABELS[:, :2], LABELS + 2, LABELS - 2, LABELS + 0.5])
def test_labels_that_do_not_fit_are_refused_as_by_the_pair(labels):
    with pytest.raises((TypeError, ValueError)) as by_pair:
        F.softmax_cross_entropy(LOGITS, labels)
    with pytest.raises(by_pair.type) as by_kernel:
        passes(LOGITS, labels)
    assert str(by_kernel.value) == str(by_pair.value)


def test_few_logits_are_left_to_the_pair(monkeypatch):
    sizes = []

    def note_size(*arguments, **options):
        sizes.append(arguments[0].size)
        return losses.softmax_cross_entropy(*arguments, **options)

    pair = note_size, losses.softmax_cross_entropy_backward
    monkeypatch.setitem(KERNELS, "softmax_cross_entropy", pair)
    loss = fast_losses.fast_loss(SoftmaxCrossEntropy(0.1), "numpy", EngineContext())
    for rows in (fast_losses.FEW // 8 - 1, fast_losses.FEW // 8):
        logits = np.random.default_rng(0).normal(size=(rows, 8))
        labels = np.arange(rows) % 8
        value, cache = loss.forward(logits, labels)
        plain, plain_cache = SoftmaxCrossEntropy(0.1).forward(logits, labels)
        assert value == pytest.approx(plain, rel=1e-12)
        expected = SoftmaxCrossEntropy(0.1).backward(0.5, plain_cache)
        np.testing.assert_allclose(loss.backward(0.5, cache), expected, rtol=0, atol=1e-17)
    assert sizes == [fast_losses.FEW]


def test_a_sure_prediction_keeps_its_digits():
    logits = np.array([[20.0, 0.0, -5.0], [3.0, 3.0, -60.0]], "float32")
    for row, rest in zip(logits, (math.exp(-20.0) + math.exp(-25.0), 1.0), strict=True):
        loss, cache = losses.softmax_cross_entropy(
            row[None], np.array([0]), context=EngineContext()
        )
        np.testing.assert_allclose(loss, math.log1p(rest), rtol=5e-7)
        dlogits = losses.softmax_cross_entropy_backward(1.0, cache)
        np.testing.assert_allclose(dlogits[0, 0], -rest / (1.0 + rest), rtol=5e-7)
