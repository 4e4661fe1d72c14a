import math

import numpy as np
import pytest

from npformer import functional as F


def test_cross_entropy_is_minus_the_log_of_the_right_classes_probability(rng):
    logits, labels = rng.normal(size=(4, 3)), np.array([2, 0, 1, 1])
    p, _ = F.softmax(logits)
    by_hand = -sum(math.log(p[i, labels[i]]) for i in range(4)) / 4
    np.testing.assert_allclose(F.softmax_cross_entropy(logits, labels)[0], by_hand, rtol=1e-13)


def test_equal_logits_cost_the_log_of_the_number_of_classes():
    loss, _ = F.softmax_cross_entropy(np.zeros((5, 10)), np.arange(5))
    np.testing.assert_allclose(loss, math.log(10), rtol=1e-14)


def test_label_smoothing_is_the_mixture_with_the_uniform_distribution(rng):
    logits, labels = rng.normal(size=(4, 3)), np.array([2, 0, 1, 1])
    q = np.full((4, 3), 0.1 / 3)
    q[np.arange(4), labels] += 0.9
    by_hand = -(q * np.log(F.softmax(logits)[0])).sum(axis=-1).mean()
    smoothed, _ = F.softmax_cross_entropy(logits, labels, label_smoothing=0.1)
    np.testing.assert_allclose(smoothed, by_hand, rtol=1e-13)


def test_positions_without_a_label_count_in_neither_loss_nor_mean(rng):
    logits, labels = rng.normal(size=(2, 3, 4)), np.array([[0, -1, 3], [-1, -1, 2]])
    loss, cache = F.softmax_cross_entropy(logits, labels)
    alone, _ = F.softmax_cross_entropy(logits[labels >= 0], labels[labels >= 0])
    np.testing.assert_allclose(loss, alone, rtol=1e-13)
    np.testing.assert_array_equal(F.softmax_cross_entropy_backward(1.0, cache)[labels < 0], 0.0)


def test_no_label_at_all_costs_nothing(rng):
    loss, cache = F.softmax_cross_entropy(rng.normal(size=(4, 3)), np.full(4, F.NO_LABEL))
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


def test_the_same_batch_twice_costs_the_same_for_it_is_a_mean(rng):
    logits, labels = rng.normal(size=(4, 3)), np.array([2, 0, 1, 1])
    loss, _ = F.softmax_cross_entropy(logits, labels)
    twice, _ = F.softmax_cross_entropy(np.tile(logits, (2, 1)), np.tile(labels, 2))
    np.testing.assert_allclose(twice, loss, rtol=1e-14)


def test_unsigned_labels_are_labels(rng):
    logits, labels = rng.normal(size=(4, 3)), np.array([2, 0, 1, 1])
    unsigned, _ = F.softmax_cross_entropy(logits, labels.astype("uint8"))
    assert unsigned == F.softmax_cross_entropy(logits, labels)[0]


def test_huge_logits_stay_finite():
    logits = np.array([[1e300, -1e300], [-1e300, 1e300]])
    loss, cache = F.softmax_cross_entropy(logits, np.array([0, 1]))
    assert loss == 0.0
    assert np.isfinite(F.softmax_cross_entropy_backward(1.0, cache)).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_gradient_of_each_row_sums_to_0(rng, smoothing):
    _, cache = F.softmax_cross_entropy(rng.normal(size=(4, 3)), np.array([2, 0, 1, 1]), smoothing)
    rows = F.softmax_cross_entropy_backward(1.0, cache).sum(axis=-1)
    np.testing.assert_allclose(rows, 0.0, atol=1e-16)


def test_one_logit_is_two_logits_of_which_one_is_0(rng):
    z, labels = rng.normal(size=8), rng.integers(0, 2, 8)
    two = np.stack([np.zeros(8), z], axis=-1)
    binary, _ = F.binary_cross_entropy_with_logits(z, labels.astype("float64"))
    np.testing.assert_allclose(binary, F.softmax_cross_entropy(two, labels)[0], rtol=1e-13)


def test_one_huge_logit_stays_finite():
    z, targets = np.array([1000.0, -1000.0, 1000.0]), np.array([1.0, 0.0, 0.0])
    loss, cache = F.binary_cross_entropy_with_logits(z, targets)
    np.testing.assert_allclose(loss, 1000.0 / 3)
    np.testing.assert_allclose(
        F.binary_cross_entropy_with_logits_backward(1.0, cache), [0, 0, 1 / 3]
    )


def test_squared_error_is_the_mean_over_all_entries():
    loss, cache = F.mean_squared_error(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2)))
    assert loss == (1 + 4 + 9 + 16) / 4
    np.testing.assert_array_equal(
        F.mean_squared_error_backward(1.0, cache), [[0.5, 1.0], [1.5, 2.0]]
    )


def test_losses_pass_on_the_gradient_of_what_follows(rng):
    _, cache = F.softmax_cross_entropy(rng.normal(size=(4, 3)), np.array([2, 0, 1, 1]))
    once, thrice = (F.softmax_cross_entropy_backward(d, cache) for d in (1.0, 3.0))
    np.testing.assert_allclose(thrice, 3.0 * once, rtol=1e-14)


@pytest.mark.parametrize("dloss", [np.float64(0.5), np.float32(0.5), 0.5])
def test_gradients_of_float32_stay_float32_whatever_the_number_that_follows(rng, dloss):
    z = rng.normal(size=(4, 3)).astype("float32")
    for loss, target in (
        (F.softmax_cross_entropy, np.array([2, 0, 1, 1])),
        (F.binary_cross_entropy_with_logits, np.ones_like(z)),
        (F.mean_squared_error, np.ones_like(z)),
    ):
        _, cache = loss(z, target)
        gradient = getattr(F, f"{loss.__name__}_backward")(dloss, cache)
        assert gradient.dtype == "float32"
        np.testing.assert_array_equal(gradient, getattr(F, f"{loss.__name__}_backward")(0.5, cache))
