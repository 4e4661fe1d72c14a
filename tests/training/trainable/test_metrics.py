import numpy as np
import pytest

from npformer.training.trainable.metrics import balanced_accuracy, macro_f1


def by_class(y, predicted, n_classes):
    counts = [np.bincount(of, minlength=n_classes) for of in (y[y == predicted], y, predicted)]
    return np.stack(counts).astype(float)


def test_a_prediction_of_a_class_without_labels_counts_in_f1_alone():
    counts = by_class(np.array([0, 0]), np.array([0, 1]), 3)
    assert macro_f1(counts) == pytest.approx((2 / 3 + 0) / 2)
    assert balanced_accuracy(counts) == 0.5


def test_metrics_are_those_of_scikit_learn(rng):
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is not installed, with which metrics are compared"
    )
    for n_classes in (2, 3, 9):
        y, predicted = rng.integers(0, n_classes, (2, 30))
        counts = by_class(y, predicted, n_classes)
        assert macro_f1(counts) == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
        y[y == 1] = 0
        counts = by_class(y, predicted, n_classes)
        assert balanced_accuracy(counts) == pytest.approx(
            np.mean(metrics.recall_score(y, predicted, average=None, labels=np.unique(y)))
        )
