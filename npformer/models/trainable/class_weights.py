"""Class weights: what a user passes, made into a number for each class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import Array, a_type, checks, described
from npformer.core.support.weights import moderate
from npformer.functional import NO_LABEL
from npformer.models.losses import Classification, Loss


def class_weights(
    class_weight: Any, loss: Loss, n_classes: int, of_labels: Callable[[], np.ndarray]
) -> tuple[float, ...]:
    """Return the weight of each class.

    "balanced" weighs all classes that occur as if they were equally frequent: a class with k of n
    labels gets n / (number of classes k); `of_labels` counts them. A class without labels, and one
    that a mapping does not name, gets 1.
    """
    if not isinstance(loss, Classification) or not loss.takes_weights:
        raise TypeError(
            f"class_weight is given and the loss is {a_type(loss)}; expected one of "
            "npformer's losses of classes. Pass sample_weight instead"
        )
    if isinstance(class_weight, str):
        checks.choice("class_weight", class_weight, ("balanced",))
        of_class = of_labels()
        occurs = of_class > 0.0
        share = of_class.sum() / max(int(occurs.sum()), 1)
        return tuple(np.where(occurs, share / np.where(occurs, of_class, 1.0), 1.0).tolist())
    if isinstance(class_weight, Mapping):
        found = np.ones(n_classes)
        for label, weight in class_weight.items():
            which = f"a label in class_weight (of {n_classes} classes)"
            checks.whole(which, label, at_least=0, at_most=n_classes - 1)
            found[label] = checks.not_negative(f"class_weight[{label}]", weight)
        return tuple(moderate(found).tolist())
    if not isinstance(class_weight, Sequence | np.ndarray):
        raise TypeError(
            f"class_weight is {described(class_weight)}; expected 'balanced', a number for each "
            "class, or a mapping of labels to numbers"
        )
    numbers = moderate(checks.weights("class_weight", class_weight))
    if numbers.shape != (n_classes,):
        raise ValueError(
            f"class_weight has shape {numbers.shape}; expected ({n_classes},), one number for each "
            "class, in the order of the labels"
        )
    return tuple(numbers.tolist())


def label_weights(y: Array, weights: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return how often each class is a label, each label counted `weights` times: (n_classes,)."""
    labels = np.asarray(y)
    counted = labels != NO_LABEL
    each = None if weights is None else weights[counted].astype("float64")
    return np.bincount(labels[counted], each, n_classes).astype("float64")
