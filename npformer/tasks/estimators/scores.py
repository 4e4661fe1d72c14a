"""Scores: how well predictions match labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core.support.tables import as_html
from npformer.models.trainable.metrics import macro_f1
from npformer.training import confusion

FIGURES = ("accuracy", "macro_f1", "loss", "calibration_error")
BY_CLASS = ("precision", "recall", "f1", "confusion")

Table = confusion.Rows
"""Rows of cells; the first is the heading."""


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """How well a classifier predicts some labels.

    Attributes
    ----------
    classes : list
        The names of the classes.
    confusion : int array, shape (classes, classes)
        How many samples of class i, the row, were predicted as class j, the column.
    loss : float
        The mean of -log p of the right class, in nats; NaN if there were no probabilities.
    worst : list of (int, float)
        The wrongly predicted samples with the lowest probabilities of their own class, and these
        probabilities.
    calibration_error : float
        How far the probability of an answer is from the share of right answers, on average: see
        `npformer.tasks.estimators.scores.calibration_error`.
    """

    classes: Sequence[Any]
    confusion: np.ndarray
    loss: float
    worst: list[tuple[int, float]]
    calibration_error: float

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of samples that were predicted correctly."""
        return float(np.trace(self.confusion) / self.n)

    @property
    def precision(self) -> np.ndarray:
        """The share of each class's predictions that are right; 0 for a class without any."""
        return confusion.precision_of(self.confusion)

    @property
    def recall(self) -> np.ndarray:
        """The share of each class that was predicted as such; 0 for a class without samples."""
        return confusion.recall_of(self.confusion)

    @property
    def f1(self) -> np.ndarray:
        """2 hits / (labels + predictions) of each class: precision and recall's harmonic mean."""
        return confusion.f1_of(self.confusion)

    @property
    def macro_f1(self) -> float:
        """The mean of `f1` over the classes that occur as a label or a prediction."""
        hits, labels = np.diag(self.confusion), self.confusion.sum(axis=1)
        return macro_f1(np.stack([hits, labels, self.confusion.sum(axis=0)]).astype("float64"))

    def by_class(self) -> Table:
        """Return each class, how often it is right, and its precision, recall and F1."""
        return confusion.by_class(self.classes, self.confusion)

    def confusion_table(self) -> Table:
        """Return a row for each label, with how often each class was predicted."""
        return confusion.confusion_table(self.classes, self.confusion)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "samples": self.n,
            **{name: getattr(self, name) for name in FIGURES},
            "classes": [str(name) for name in self.classes],
            **{name: getattr(self, name).tolist() for name in BY_CLASS},
        }

    def __str__(self) -> str:
        """Return accuracy and macro F1, a line for each class, and the confusion matrix."""
        loss = "" if np.isnan(self.loss) else f", loss {self.loss:.4f} nats"
        lines = [f"accuracy {self.accuracy:.4f}, macro F1 {self.macro_f1:.4f}{loss}", ""]
        lines += confusion.lines_by_class(self.classes, self.confusion)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the tables as HTML, for notebooks."""
        title = str(self).partition("\n")[0]
        tables = [
            (title, [tuple(row) for row in self.by_class()]),
            ("confusions", [tuple(row) for row in self.confusion_table()]),
        ]
        return as_html(tables, [])


def comparison_table(scores: Mapping[str, Scores | None]) -> Table:
    """Return a table of the scores of classifiers, by name; those that have none are left out."""
    table = [["", "accuracy", "macro F1", "loss", "calibration error"]]
    known = {name: score for name, score in scores.items() if score is not None}
    return table + [
        [name, *_words([getattr(score, figure) for figure in FIGURES])]
        for name, score in known.items()
    ]


def _words(shares: Iterable[float]) -> list[str]:
    return [f"{share:.4f}" for share in shares]


def scores_of(
    classes: Sequence[Any], y: np.ndarray, probabilities: np.ndarray, n_worst: int = 10
) -> Scores:
    """Return the scores of probabilities, (samples, classes), for the right classes y."""
    rows = np.arange(len(y))
    predicted = probabilities.argmax(axis=1)
    p_of_label = probabilities[rows, y].astype("float64")
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(p_of_label[wrong], kind="stable")][:n_worst]
    loss = float(-np.log(np.maximum(p_of_label, np.finfo("float32").tiny)).mean())
    pairs, n = y.astype("int64") * len(classes) + predicted, len(classes)
    counts = np.bincount(pairs, minlength=n * n).reshape(n, n)
    error = calibration_error(predicted == y, probabilities.max(axis=1))
    return Scores(classes, counts, loss, [(int(i), p_of_label[i]) for i in worst], error)


def calibration_error(right: np.ndarray, confidence: np.ndarray, n_bins: int = 10) -> float:
    """Return how far the confidence is from the share of right answers.

    Answers are sorted by confidence into bins of equal size; equal confidences share a bin, so the
    order of the samples does not matter. The distance between a bin's mean confidence and its share
    of right answers is averaged, weighted by the size of the bin.
    """
    _, place, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts + 1) // 2  # of the middle one of those that are equal
    of_rank = np.repeat(range(n_bins), [*map(len, np.array_split(right, n_bins))])
    gaps = np.bincount(of_rank[rank][place], confidence - right)
    return float(np.abs(gaps).sum()) / max(len(right), 1)
