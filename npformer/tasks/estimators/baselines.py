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
    except ImportError:
        return None
    words = TfidfVectorizer()
    try:
        x = words.fit_transform(train[0])
    except ValueError:  # only punctuation or single letters
        return None
    model = LogisticRegression(C=10, max_iter=1000).fit(x, train[1])
    return _scores(classes, model, words.transform(test[0]), test[1])


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
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        return None
    longest = max(map(len, train[0]))

    def rows(series: Sequence[np.ndarray]) -> np.ndarray:
        padded = np.zeros((len(series), longest, series[0].shape[1]))
        for row, each in zip(padded, series, strict=True):
            row[: len(each)] = each[:longest]
        return padded.reshape(len(series), -1)

    scaler = StandardScaler()
    model = LogisticRegression(max_iter=2000).fit(scaler.fit_transform(rows(train[0])), train[1])
    return _scores(classes, model, scaler.transform(rows(test[0])), test[1])


def _scores(classes: Sequence[Any], model: Any, x: Any, y: np.ndarray) -> Scores:
    """Return the scores of scikit-learn's model, which may not have seen every class."""
    probabilities = np.zeros((len(y), len(classes)))
    probabilities[:, model.classes_] = model.predict_proba(x)
    return scores_of(classes, y, probabilities)
