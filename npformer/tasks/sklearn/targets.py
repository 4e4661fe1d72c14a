"""Labels and weights of samples, after scikit-learn's checks."""

from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
)

from npformer.core import checks
from npformer.core.support.weights import moderate
from npformer.tasks.estimators.class_names import plain_labels
from npformer.tasks.estimators.readers import Samples


def labels_of(estimator: Any, samples: Samples, y: Any) -> np.ndarray:
    """Return y as an array with a label for each sample."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    checks.ordered("y", y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    check_consistent_length(samples, y)
    return np.asarray(y)


def weights_of(estimator: Any, samples: Samples, y: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Return the weight of each sample, that of its class included."""
    checks.ordered("sample_weight", sample_weight)
    weights = _check_sample_weight(
        sample_weight, samples, dtype=np.float64, ensure_non_negative=True
    )
    weights = moderate(weights)
    if isinstance(estimator.class_weight, str):
        checks.choice("class_weight", estimator.class_weight, ("balanced",))
        classes, numbers = np.unique(y, return_inverse=True)
        of_class = np.bincount(numbers, weights)  # each is to weigh 1 / n_classes of the whole
        share = weights.sum() / (len(classes) * np.where(of_class > 0.0, of_class, 1.0))
        weights = weights * share[numbers]
    elif estimator.class_weight is not None:
        weights = weights * moderate(compute_sample_weight(estimator.class_weight, y))
    if not weights.any():
        raise ValueError(
            "sample weights times class weights are zero for all samples; expected one above zero"
        )
    return np.asarray(weights)


def classes_of(y: np.ndarray) -> np.ndarray:
    """Return the sorted classes of some labels; there must be at least two."""
    classes = np.unique(y)
    plain_labels(classes, "the classes of y")
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class, {classes.tolist()[0]!r}, in samples with a weight above zero; "
            "expected at least 2 classes to tell apart"
        )
    return classes


def numbers_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the place of each label in the sorted classes."""
    if len(unknown := np.setdiff1d(y, classes)):
        raise ValueError(
            f"y holds the classes {unknown}, which training did not have; expected only "
            f"{classes}. Pass all of them to the first partial_fit, or fit with warm_start=False"
        )
    return np.searchsorted(classes, y)
