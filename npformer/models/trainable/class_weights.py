"""Class weights: from what a user passes to a number for each class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import Array, a_type, checks, describe
from npformer.core.support.weights import moderate
from npformer.functional import NO_LABEL
from npformer.models.losses import Classification, Loss


def class_weights(
    class_weight: Any, loss: Loss, n_classes: int, count_labels: Callable[[], np.ndarray]
) -> tuple[float, ...]:
    """Return the weight of each class.

    "balanced" weighs all classes that occur as if they were equally frequent: a class with k of n
    labels gets n / (number of classes k); `count_labels` returns k for each class. Classes without
    labels, and classes missing in a mapping, get 1.
    """
    if not isinstance(loss, Classification) or not loss.takes_weights:
        raise TypeError(
            f"class_weight is given and the loss is {a_type(loss)}; expected one of "
            "npformer's losses of classes. Pass sample_weight instead"
        )
    if isinstance(class_weight, str):
        checks.choice("class_weight", class_weight, ("balanced",))
        label_counts = count_labels()
        occurs = label_counts > 0.0
        mean_count = label_counts.sum() / max(int(occurs.sum()), 1)
        balanced = np.where(occurs, mean_count / np.where(occurs, label_counts, 1.0), 1.0)
        return tuple(balanced.tolist())
    if isinstance(class_weight, Mapping):
        weights = np.ones(n_classes)
        for label, weight in class_weight.items():
            name = f"a label in class_weight (of {n_classes} classes)"
            checks.whole(name, label, at_least=0, at_most=n_classes - 1)
            weights[label] = checks.not_negative(f"class_weight[{label}]", weight)
        return tuple(moderate(weights).tolist())
    if not isinstance(class_weight, Sequence | np.ndarray):
        raise TypeError(
            f"class_weight is {describe(class_weight)}; expected 'balanced', a number for each "
            "class, or a mapping of labels to numbers"
        )
    weights = moderate(checks.weights("class_weight", class_weight))
    if weights.shape != (n_classes,):
        raise ValueError(
            f"class_weight has shape {weights.shape}; expected ({n_classes},), one number for each "
            "class, in the order of the labels"
        )
    return tuple(weights.tolist())


def label_weights(y: Array, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return how often each class is a label, each label counted `weights` times: (n_classes,)."""
    labels = np.asarray(y)
    has_label = labels != NO_LABEL
    if weights is not None:
        weights = weights[has_label].astype("float64")
    return np.bincount(labels[has_label], weights, n_classes).astype("float64")
