"""Baselines: scores of simple classifiers, so that nobody mistakes a poor model for a good one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.tasks.estimators.class_names import ClassNames
from npformer.tasks.estimators.scores import Scores, scores_of

MAJORITY = "majority class"
TF_IDF = "TF-IDF + logistic regression"
LINEAR = "logistic regression"


Labelled = tuple[Sequence[Any], Any]
"""Samples, and their labels or the numbers of their classes."""


def score_baselines(names: ClassNames, train: Labelled, test: Labelled) -> dict[str, Scores | None]:
    """Return the scores of baselines that learn from (samples, labels), by name."""
    y, y_test = names.numbers(train[1]), names.numbers(test[1])
    name = TF_IDF if isinstance(train[0][0], str) else LINEAR
    baseline = logistic_regression(names.names, (train[0], y), (test[0], y_test))
    return {MAJORITY: majority(names.names, y, y_test), name: baseline}


def majority(classes: Sequence[Any], y_train: np.ndarray, y_test: np.ndarray) -> Scores:
    """Return the scores of a classifier that knows only how frequent each class is."""
    counts = np.bincount(y_train, minlength=len(classes))
    shares = np.tile(counts / counts.sum(), (len(y_test), 1))
    return scores_of(classes, y_test, shares)


def logistic_regression(classes: Sequence[Any], train: Labelled, test: Labelled) -> Scores | None:
    """Return the scores on weighted counts of words, or on series of one length, scaled.

    None if scikit-learn is not installed, or if no training text has a word that it counts.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer, StandardScaler
    except ImportError:
        return None
    x, y = train
    if isinstance(x[0], str):
        model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10, max_iter=1000))
    else:
        rows = FunctionTransformer(_rows, kw_args={"length": max(map(len, x))})
        model = make_pipeline(rows, StandardScaler(), LogisticRegression(max_iter=2000))
    try:
        model.fit(x, y)
    except ValueError:  # only punctuation or single letters
        return None
    probabilities = np.zeros((len(test[1]), len(classes)))
    probabilities[:, model.classes_] = model.predict_proba(test[0])  # not all need be known
    return scores_of(classes, test[1], probabilities)


def _rows(series: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Return series as rows of numbers, cut to a length or padded with 0."""
    padded = np.zeros((len(series), length, series[0].shape[1]))
    for row, values in zip(padded, series, strict=True):
        row[: len(values)] = values[:length]
    return padded.reshape(len(series), -1)
