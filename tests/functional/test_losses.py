import math

import numpy as np
import pytest

from npformer import functional as F

LABELS = np.array([2, 0, 1, 1])


@pytest.fixture
def logits(rng):
    return rng.normal(size=(4, 3))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_the_mean_over_rows_beside_smoothed_labels(logits, smoothing):
    q = (1.0 - smoothing) * np.eye(3)[LABELS] + smoothing / 3
    by_hand = -(q * np.log(F.softmax(logits)[0])).sum(axis=-1).mean()
    loss, _ = F.softmax_cross_entropy(logits, LABELS, label_smoothing=smoothing)
    np.testing.assert_allclose(loss, by_hand, rtol=1e-13)


def test_positions_without_a_label_count_in_nothing(rng, logits):
    x, labels = rng.normal(size=(2, 3, 4)), np.array([[0, -1, 3], [-1, -1, 2]])
    loss, _ = F.softmax_cross_entropy(x, labels)
    alone, _ = F.softmax_cross_entropy(x[labels >= 0], labels[labels >= 0])
    np.testing.assert_allclose(loss, alone, rtol=1e-13)
    loss, cache = F.softmax_cross_entropy(logits, np.full(4, F.NO_LABEL))
    assert loss == 0.0
    np.testing.assert_array_equal(F.softmax_cross_entropy_backward(1.0, cache), 0.0)


@pytest.mark.parametrize("others", [-np.inf, -3e38])
def test_a_class_that_is_ruled_out_costs_nothing(others):
    logits = np.array([[0.0, others, 0.0]], dtype="float32")
    with np.errstate(over="ignore"):
        loss, cache = F.softmax_cross_entropy(logits, np.array([2]))
    np.testing.assert_allclose(loss, math.log(2), rtol=1e-6)
    gradient = F.softmax_cross_entropy_backward(1.0, cache)
    np.testing.assert_allclose(gradient, [[0.5, 0.0, -0.5]], rtol=1e-6)


def test_unsigned_labels_are_labels(logits):
    unsigned, _ = F.softmax_cross_entropy(logits, LABELS.astype("uint8"))
    assert unsigned == F.softmax_cross_entropy(logits, LABELS)[0]


def test_huge_logits_stay_finite():
    loss, cache = F.softmax_cross_entropy(1e300 * np.array([[1.0, -1.0], [-1.0, 1.0]]), LABELS[1:3])
    assert loss == 0.0
    assert np.isfinite(F.softmax_cross_entropy_backward(1.0, cache)).all()


def test_one_logit_is_two_logits_of_which_one_is_0(rng):
    z, labels = rng.normal(size=8), rng.integers(0, 2, 8)
    two = np.stack([np.zeros(8), z], axis=-1)
    binary, _ = F.binary_cross_entropy_with_logits(z, labels.astype("float64"))
    np.testing.assert_allclose(binary, F.softmax_cross_entropy(two, labels)[0], rtol=1e-13)


def test_one_huge_logit_stays_finite():
    z, targets = np.array([1000.0, -1000.0, 1000.0]), np.array([1.0, 0.0, 0.0])
    loss, cache = F.binary_cross_entropy_with_logits(z, targets)
    np.testing.assert_allclose(loss, 1000.0 / 3)
    gradient = F.binary_cross_entropy_with_logits_backward(1.0, cache)
    np.testing.assert_allclose(gradient, [0, 0, 1 / 3])


def test_squared_error_is_the_mean_over_all_entries():
    loss, _ = F.mean_squared_error(np.array([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 2.0))
    assert loss == (1 + 0 + 1 + 4) / 4


@pytest.mark.parametrize("dloss", [np.float64(0.5), np.float32(0.5), 0.5])
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("softmax_cross_entropy", LABELS),
        ("binary_cross_entropy_with_logits", np.ones((4, 3), "float32")),
        ("mean_squared_error", np.ones((4, 3), "float32")),
    ],
)
def test_gradients_of_float32_stay_float32_whatever_follows(logits, dloss, name, target):
    _, cache = getattr(F, name)(logits.astype("float32"), target)
    backward = getattr(F, f"{name}_backward")
    assert backward(dloss, cache).dtype == "float32"
    np.testing.assert_array_equal(backward(dloss, cache), backward(0.5, cache))


SURE = np.array([[0.0, -20.0, -25.0], [30.0, -3.0, 12.0], [1.0, 1.0, -80.0]])
LOSSES = np.array(
    [
        math.log1p(math.exp(-20.0) + math.exp(-25.0)),
        math.log1p(math.exp(-18.0) + math.exp(-33.0)),
        math.log(2.0),
    ]
)
"""Of class 0."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loss_of_a_sure_prediction_keeps_its_digits(dtype):
    eps = float(np.finfo(dtype).eps)
    for row, expected in zip(SURE.astype(dtype), LOSSES, strict=True):
        loss, _ = F.softmax_cross_entropy(row[None], np.array([0]))
        np.testing.assert_allclose(loss, expected, rtol=4 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_a_sure_prediction_keeps_its_digits(dtype):
    eps = float(np.finfo(dtype).eps)
    for row, expected in zip(SURE.astype(dtype), LOSSES, strict=True):
        _, cache = F.softmax_cross_entropy(row[None], np.array([0]))
        dlogits = F.softmax_cross_entropy_backward(1.0, cache)
        np.testing.assert_allclose(dlogits[0, 0], math.expm1(-expected), rtol=8 * eps)


@pytest.mark.parametrize(("target", "z"), [(1.0, 20.0), (0.0, -20.0), (1.0, 80.0)])
def test_the_gradient_of_a_sure_logit_keeps_its_digits(target, z):
    logits, targets = np.array([z], "float32"), np.array([target], "float32")
    loss, cache = F.binary_cross_entropy_with_logits(logits, targets)
    np.testing.assert_allclose(loss, math.log1p(math.exp(-abs(z))), rtol=5e-7)
    dlogits = F.binary_cross_entropy_with_logits_backward(1.0, cache)
    expected = (1.0 if target == 0.0 else -1.0) / (1.0 + math.exp(abs(z)))
    np.testing.assert_allclose(dlogits, [expected], rtol=5e-7)
