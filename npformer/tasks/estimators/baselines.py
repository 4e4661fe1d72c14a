"""Baselines: scores of simple classifiers, so that nobody mistakes a poor model for a good one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.tasks.estimators.class_names import ClassNames
from npformer.tasks.estimators.scores import Scores, scores_of

MAJORITY = "majority class"
TF_IDF = "TF-IDF + logistic regression"
LINEAR = "logistic regression"


def compared(
    names: ClassNames, train: tuple[Sequence[Any], Any], test: tuple[Sequence[Any], Any]
) -> dict[str, Scores | None]:
    """Return the scores of baselines that learn from (samples, labels), by name."""
    (x, labels), (x_test, y_test) = train, (test[0], names.numbers(test[1]))
    y = names.numbers(labels)
    name, baseline = (TF_IDF, tf_idf) if isinstance(x[0], str) else (LINEAR, linear)
    found = majority(names.names, y, y_test), baseline(names.names, (x, y), (x_test, y_test))
    return dict(zip((MAJORITY, name), found, strict=True))


def majority(classes: Sequence[Any], y_train: np.ndarray, y_test: np.ndarray) -> Scores:
    """Return the scores of a classifier that knows only how frequent each class is."""
    counts = np.bincount(y_train, minlength=len(classes))
    shares = np.tile(counts / counts.sum(), (len(y_test), 1))
    return scores_of(classes, y_test, shares)


def tf_idf(
    classes: Sequence[Any],
    train: tuple[Sequence[str], np.ndarray],
    test: tuple[Sequence[str], np.ndarray],
) -> Scores | None:
    """Return the scores of logistic regression on weighted counts of words.

    None if scikit-learn is not installed, or if no training text has a word that it counts.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    except ImportError:
        return None
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10, max_iter=1000))
    try:
        return _scores(classes, model, train, test)
    except ValueError:  # only punctuation or single letters
        return None


def linear(
    classes: Sequence[Any],
    train: tuple[Sequence[np.ndarray], np.ndarray],
    test: tuple[Sequence[np.ndarray], np.ndarray],
) -> Scores | None:
    """Return the scores of logistic regression on series, padded with 0 to one length and scaled.

    None if scikit-learn is not installed.
    """
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        return None
    longest = max(map(len, train[0]))

    def rows(series: Sequence[np.ndarray]) -> np.ndarray:
        padded = np.zeros((len(series), longest, series[0].shape[1]))
        for row, each in zip(padded, series, strict=True):
            row[: len(each)] = each[:longest]
        return padded.reshape(len(series), -1)

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return _scores(classes, model, (rows(train[0]), train[1]), (rows(test[0]), test[1]))


def _scores(classes: Sequence[Any], model: Any, train: Any, test: Any) -> Scores:
    """Return the scores of scikit-learn's model, which may not see every class in training."""
    model.fit(*train)
    probabilities = np.zeros((len(test[1]), len(classes)))
    probabilities[:, model.classes_] = model.predict_proba(test[0])
    return scores_of(classes, test[1], probabilities)
