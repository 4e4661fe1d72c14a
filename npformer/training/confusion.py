"""What a confusion matrix says about each class, and its tables.

Row i, column j of a confusion matrix counts the labels of class i that were predicted as class j;
with weights, it adds up their weights.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core.support.tables import align_columns
from npformer.core.support.wording import shorten_names

LONGEST = 24
"""Characters of a class's name in a printed table."""

MOST_COLUMNS = 12
"""Classes whose confusion matrix is printed."""

Rows = list[list[str]]
"""Rows of cells; the first is the heading."""


def precision_of(confusion: np.ndarray) -> np.ndarray:
    """Return the share of each class's predictions that are right; 0 for a class without any."""
    return _ratio(np.diag(confusion), confusion.sum(axis=0))


def recall_of(confusion: np.ndarray) -> np.ndarray:
    """Return the share of each class that was predicted as such; 0 for one without labels."""
    return _ratio(np.diag(confusion), confusion.sum(axis=1))


def f1_of(confusion: np.ndarray) -> np.ndarray:
    """Return 2 hits / (labels + predictions) of each class."""
    of_both_kinds = confusion.sum(axis=0) + confusion.sum(axis=1)
    return _ratio(2 * np.diag(confusion), of_both_kinds)


def by_class(classes: Sequence[Any], confusion: np.ndarray) -> Rows:
    """Return each class, its number of labels, and its precision, recall and F1."""
    figures = [precision_of(confusion), recall_of(confusion), f1_of(confusion)]
    rows = zip(classes, confusion.sum(axis=1), np.stack(figures, axis=1), strict=True)
    table = [["class", "labels", "precision", "recall", "F1"]]
    return table + [
        [str(name), _count(n), *(f"{share:.4f}" for share in shares)] for name, n, shares in rows
    ]


def confusion_table(classes: Sequence[Any], confusion: np.ndarray) -> Rows:
    """Return a row for each label, with how often each class was predicted."""
    names = shorten_names([str(name) for name in classes], LONGEST)
    rows = zip(names, confusion, strict=True)
    return [["label / predicted", *names], *([name, *map(_count, row)] for name, row in rows)]


def lines_by_class(classes: Sequence[Any], confusion: np.ndarray) -> list[str]:
    """Return the lines of both tables; of many classes, only those of the first."""
    names = shorten_names([str(name) for name in classes], LONGEST)
    lines = align_columns(by_class(names, confusion), "<>>>>")
    if len(names) <= MOST_COLUMNS:
        widest = max(4, *map(len, names))
        sides = f"<{'>' * len(names)}"
        lines += ["", *align_columns(confusion_table(classes, confusion), sides, widest)]
    return lines


def _count(n: float) -> str:
    """Return a count, or a sum of weights, as words."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"


def _ratio(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    divisors = np.where(wholes > 0, wholes, 1)
    return np.asarray(np.where(wholes > 0, parts / divisors, 0.0))
