"""Baselines: what the simplest classifiers reach, so that nobody mistakes a poor one for good."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.pipelines.scores import Scores, scores_of

MAJORITY = "majority class"
TF_IDF = "TF-IDF + logistic regression"


def majority(classes: Sequence[Any], y_train: np.ndarray, y_test: np.ndarray) -> Scores:
    """Return the scores of a classifier that knows nothing but how frequent each class is."""
    counts = np.bincount(y_train, minlength=len(classes))
    shares = np.tile(counts / counts.sum(), (len(y_test), 1))
    return scores_of(classes, y_test, shares)


def tf_idf(
    classes: Sequence[Any],
    train: tuple[Sequence[str], np.ndarray],
    test: tuple[Sequence[str], np.ndarray],
) -> Scores | None:
    """Return the scores of logistic regression on weighted counts of words.

    None if scikit-learn is not there, or if no text of the training has a word that it counts.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        return None
    words = TfidfVectorizer()
    try:
        x = words.fit_transform(train[0])
    except ValueError:  # only signs, or single letters
        return None
    model = LogisticRegression(C=10, max_iter=1000).fit(x, train[1])
    probabilities = np.zeros((len(test[0]), len(classes)))
    probabilities[:, model.classes_] = model.predict_proba(words.transform(test[0]))
    return scores_of(classes, test[1], probabilities)
