"""Metrics: how good a model's answers are, in one number, by which `fit` chooses the best epoch."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from npformer.core import a_type, checks, describe
from npformer.core.support.builders import check_takes
from npformer.functional import NO_LABEL
from npformer.models.losses import Classification, Loss, Measured

Metric = str | Callable[[np.ndarray, np.ndarray], float]
"""A name among a model's figures, or "loss"; or a function of labels and probabilities."""


def accuracy(measured: Measured) -> float:
    """Return the fraction of labels that were predicted right; NaN if there are no classes."""
    if measured.hits is None:
        return math.nan
    return measured.hits / measured.divisor


def macro_f1(by_class: np.ndarray) -> float:
    """Return the mean over classes of F1 = 2 right / (labels + predictions).

    The rows of `by_class` are right answers, labels and predictions, (3, n_classes). Classes with
    neither labels nor predictions are left out.
    """
    right, labels, predictions = by_class
    return _mean_ratio(2.0 * right, labels + predictions)


def balanced_accuracy(by_class: np.ndarray) -> float:
    """Return the mean over classes of recall = right / labels; classes without labels left out."""
    right, labels, _ = by_class
    return _mean_ratio(right, labels)


FIGURES: dict[str, Callable[[Measured], float]] = {
    "accuracy": accuracy,
    "macro_f1": lambda measured: _class_figure(macro_f1, measured),
    "balanced_accuracy": lambda measured: _class_figure(balanced_accuracy, measured),
}
"""What is reported for classes, besides the loss. Without classes, the metric "accuracy" means the
loss."""


def check_figures(model: Any) -> None:
    """Raise TypeError or ValueError for figures that an evaluation could not report."""
    model_name = type(model).__name__
    for name, figure in model.figures.items():
        if not callable(figure):
            raise TypeError(
                f"figures[{name!r}] of {model_name} is {describe(figure)}; expected a function of "
                "npformer.losses.Measured"
            )
        if name in ("loss", "labels", "metric"):
            raise ValueError(
                f"figures of {model_name} has {name!r}, which every evaluation has; expected "
                "another name"
            )


def check_metric(metric: object, figures: Iterable[str], loss: Loss) -> Metric:
    """Return a metric that can be computed for a loss: the name of a figure, or a function."""
    if isinstance(metric, str) and metric == "accuracy":  # without classes, the loss decides
        return metric
    names = tuple(dict.fromkeys((*figures, "accuracy", "loss")))
    if isinstance(metric, str):
        checks.choice("metric", metric, names)
        if metric in FIGURES and not isinstance(loss, Classification):
            raise ValueError(
                f"metric is {describe(metric)} and {a_type(loss)} has no classes; expected "
                "'loss', or a function of y and outputs"
            )
        return metric
    if not callable(metric):
        raise TypeError(
            f"metric is {describe(metric)}; expected one of {', '.join(names)}, or a "
            "function of y and probabilities"
        )
    check_takes("metric", metric, 2, "y and probabilities", "a function of these two")
    return metric


def name_of(metric: Metric) -> str:
    """Return what a metric is called."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", describe(metric))


def own_metric(
    metric: Callable[[np.ndarray, np.ndarray], float], loss: Loss, outputs: np.ndarray, y: Any
) -> float:
    """Return the value of a user's metric over all targets.

    The metric gets y, (n,), and probabilities, (n, n_classes); for a loss without classes, targets
    and outputs as they are.
    """
    y = np.asarray(y)
    if isinstance(loss, Classification):
        has_label = y != NO_LABEL
        y = y[has_label]
        outputs = loss.probabilities(outputs)[has_label]
    value = metric(y, outputs)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(
            f"metric {name_of(metric)} returned {value!r}; expected a number, the larger the better"
        )
    return number


def _class_figure(figure: Callable[[np.ndarray], float], measured: Measured) -> float:
    if measured.by_class is None:
        return math.nan
    return figure(measured.by_class)


def _mean_ratio(numerators: np.ndarray, denominators: np.ndarray) -> float:
    occurs = denominators > 0.0
    if not occurs.any():
        return math.nan
    return float((numerators[occurs] / denominators[occurs]).mean())
