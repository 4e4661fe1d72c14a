"""evaluate: the loss and other figures of a model on labelled data."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np

from npformer.core.support.tables import Table, as_html
from npformer.data.samples import Data, Samples
from npformer.models.losses import Loss, Measured
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import Metric, check_figures, own_metric
from npformer.models.trainable.predictions import refuse_samples
from npformer.training.arguments import check_model
from npformer.training.confusion import Rows, by_class, confusion_table, lines_by_class
from npformer.training.data_checks import check_data
from npformer.training.single_process import Processes, processes_of


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The loss and other figures of a model on some data.

    Attributes
    ----------
    loss : float
        Mean over all labels, in nats, without label smoothing.
    accuracy : float
        Fraction of labels that were predicted correctly; NaN for a loss without classes.
    labels : int
        The number of labels.
    macro_f1, balanced_accuracy : float
        Means over classes of F1 and of recall, in which a rare class counts as much as a frequent
        one; NaN for a loss without classes.
    metric : float or None
        The value of a function given to ``fit(metric=...)``.
    others : mapping of str to float
        Further figures of the model: `Model.figures`.
    confusion : array, shape (n_classes, n_classes), or None
        The number of labels of class i, the row, that were predicted as class j, the column; with
        weights, the sum of these. None for a loss without classes, and for more than 100 classes.
    """

    loss: float
    accuracy: float
    labels: int
    macro_f1: float = math.nan
    balanced_accuracy: float = math.nan
    metric: float | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    confusion: np.ndarray | None = field(default=None, compare=False)

    def value(self, metric: Metric) -> float:
        """Return the value of a metric; NaN for a metric of classes if there are none."""
        name = metric if isinstance(metric, str) else "metric"
        return float(self.others[name] if name in self.others else getattr(self, name))

    def by_class(self) -> Rows:
        """Return each class, its number of labels, precision, recall and F1; the first is a head.

        Raises ValueError if there is no confusion matrix.
        """
        matrix = self._confusion_or_error()
        return by_class(range(len(matrix)), matrix)

    def confusion_table(self) -> Rows:
        """Return a row for each label, with how often each class was predicted.

        Raises ValueError if there is no confusion matrix.
        """
        matrix = self._confusion_or_error()
        return confusion_table(range(len(matrix)), matrix)

    def _confusion_or_error(self) -> np.ndarray:
        if self.confusion is None:
            raise ValueError(
                "there is no confusion matrix; expected a loss of classes, and at most 100 of them"
            )
        return self.confusion

    def _figures(self) -> str:
        """Return the figures as one line."""
        names = ("loss", "accuracy", "macro_f1", "balanced_accuracy", "metric")
        figures = {name: getattr(self, name) for name in names} | dict(self.others)
        words = [
            f"{name.replace('_', ' ')} {value:.4f}{' nats' if name == 'loss' else ''}"
            for name, value in figures.items()
            if value is not None and not math.isnan(value)
        ]
        return f"{', '.join(words)}, {self.labels:,} labels"

    def __str__(self) -> str:
        """Return the figures, a line for each class, and the confusion matrix."""
        if self.confusion is None:
            return self._figures()
        lines = lines_by_class(range(len(self.confusion)), self.confusion)
        return "\n".join([self._figures(), "", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the figures and tables as HTML, for notebooks."""
        tables: list[Table] = []
        if self.confusion is not None:
            tables.append(("by class", [tuple(row) for row in self.by_class()]))
            tables.append(("confusions", [tuple(row) for row in self.confusion_table()]))
        return as_html(tables, [self._figures()])


def evaluate(
    model: Model,
    data: Data,
    batch_size: int = 256,
    loss: Loss | None = None,
    *,
    sample_weight: Any = None,
    communicator: Any = None,
) -> Evaluation:
    """Return the loss and other figures of a model on labelled data.

    `data`, `loss`, `sample_weight` and `communicator` are as in `fit`, `batch_size` as in
    `Model.predict_probabilities`. Weights count in the loss and in all metrics.

    Raises
    ------
    ValueError
        There is no label, or the model's outputs for a sample are NaN or infinite.
    """
    with processes_of(communicator) as processes:
        check_model("model", model)
        check_figures(model)
        loss = model.loss_with(loss)
        samples = check_data(model, "data", data, loss, sample_weight, processes)
        return measure(model, samples, loss, batch_size, processes, must_be_numbers=True)


def measure(
    model: Model,
    samples: Samples,
    loss: Loss,
    batch_size: int,
    processes: Processes,
    metric: Metric = "accuracy",
    must_be_numbers: bool = False,
) -> Evaluation:
    """Evaluate a model on checked data, each process on its part."""
    rows = processes.shard(len(samples))
    keeps_answers = not isinstance(metric, str)
    own_sum: list[Measured] = []  # of one item; of none if this process has no samples
    own_answers = []
    for measured, answers in measurements(
        model, samples, rows, loss, batch_size, keeps_answers, must_be_numbers
    ):
        # Added at once: a part counts each class, and there may be many of both.
        own_sum = [reduce(add, [*own_sum, measured])]
        own_answers.append(answers)
    results = processes.gather((own_sum, own_answers))
    measured = reduce(add, chain.from_iterable(part for part, _ in results))
    all_answers = list(chain.from_iterable(answers for _, answers in results))
    value = value_of_function(metric, loss, all_answers)
    figures = {name: figure(measured) for name, figure in model.figures.items()}
    return Evaluation(
        loss=measured.total / measured.divisor,
        accuracy=figures.pop("accuracy", math.nan),
        labels=measured.n,
        macro_f1=figures.pop("macro_f1", math.nan),
        balanced_accuracy=figures.pop("balanced_accuracy", math.nan),
        metric=value,
        others=figures,
        confusion=measured.confusion,
    )


def measurements(
    model: Model,
    samples: Samples,
    rows: slice,
    loss: Loss,
    batch_size: int,
    keeps_answers: bool,
    must_be_numbers: bool,
) -> Iterator[tuple[Measured, Any]]:
    """Yield what a loss measures on some samples at a time, and the answers if they are kept."""
    for outputs, targets, numbers in answers_of(model, samples, rows, batch_size):
        if must_be_numbers:
            wrong = np.isnan(outputs) | (outputs == np.inf)  # -inf: a class of probability 0
            refuse_samples(wrong, "outputs", numbers)
        answers = (outputs, targets[0]) if keeps_answers else None
        yield loss.measure(outputs, *targets), answers


def answers_of(
    model: Model, samples: Samples, rows: slice, batch_size: int
) -> Iterator[tuple[np.ndarray, Any, np.ndarray]]:
    """Yield a model's outputs, their targets, and the numbers of their samples."""
    for start, subset in samples.pieces(rows):
        for outputs, targets, numbers in model.answers(subset, batch_size):
            yield outputs, targets, start + numbers


def value_of_function(metric: Metric, loss: Loss, answers: list[Any]) -> float | None:
    """Return the value of a function that was given as the metric; None for a figure's name."""
    if isinstance(metric, str):
        return None
    outputs = np.concatenate([outputs for outputs, _ in answers])
    targets = np.concatenate([targets for _, targets in answers])
    return own_metric(metric, loss, outputs, targets)
