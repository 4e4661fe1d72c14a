"""Scores, baselines and splits against scikit-learn and by hand."""

import numpy as np
import pytest

from npformer.tasks.estimators import baselines
from npformer.tasks.estimators.scores import scores_of
from npformer.tasks.estimators.split import repeated, stratified


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, size=200), rng.dirichlet(np.ones(4), size=200)


def test_scores_by_hand():
    scores = scores_of(list("abc"), np.array([0, 1]), np.eye(3)[[0, 1]])
    assert scores.macro_f1 == 1.0  # a class without samples and predictions does not count
    assert scores.f1.tolist() == [1.0, 1.0, 0.0]
    assert scores.worst == []
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    scores = scores_of(["a", "b"], np.array([0, 1, 1, 0]), probabilities)
    np.testing.assert_array_equal(scores.confusion, [[1, 1], [1, 1]])
    assert scores.accuracy == 0.5
    assert scores.worst == [(3, 0.3), (1, 0.4)]
    assert scores.loss == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.3]).mean())


def test_scores_beside_scikit_learn(answers):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    y, probabilities = answers
    scores = scores_of(list("abcd"), y, probabilities)
    predicted = probabilities.argmax(axis=1)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        y, predicted, labels=range(4), zero_division=0
    )
    np.testing.assert_allclose(scores.precision, precision)
    np.testing.assert_allclose(scores.recall, recall)
    np.testing.assert_allclose(scores.f1, f1)
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    np.testing.assert_array_equal(scores.confusion, metrics.confusion_matrix(y, predicted))
    assert scores.loss == pytest.approx(metrics.log_loss(y, probabilities, labels=range(4)))


def test_the_table_is_for_people(answers):
    words = str(scores_of(["a", "b", "c" * 50, 7], *answers))
    assert "accuracy 0." in words
    assert "c" * 23 + "…" in words
    assert "label / predicted" in words
    many = str(scores_of(list(range(40)), *answers[:1], np.eye(40)[answers[0]]))
    assert "label / predicted" not in many


def test_the_majority(answers):
    scores = baselines.majority(["a", "b"], np.array([0, 1, 1, 1]), np.array([0, 1]))
    assert scores.accuracy == 0.5
    assert scores.confusion.tolist() == [[0, 1], [0, 1]]


def test_words_are_counted(monkeypatch):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    texts, y = ["good film", "bad film", "good", "bad"] * 5, np.array([1, 0, 1, 0] * 5)
    scores = baselines.logistic_regression(
        ["no", "yes"], (texts, y), (["good", "bad"], np.array([1, 0]))
    )
    assert scores.accuracy == 1.0
    assert (
        baselines.logistic_regression(["no", "yes"], (["!", "?"], y[:2]), (["good"], y[:1])) is None
    )
    monkeypatch.setitem(__import__("sys").modules, "sklearn.linear_model", None)
    assert (
        baselines.logistic_regression(
            ["no", "yes"], (["a b"], np.array([0])), (["a"], np.array([0]))
        )
        is None
    )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_a_split_keeps_the_shares_of_the_classes(share):
    labels = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 7 + ["d"])
    larger, smaller = stratified(labels, share, 0)
    assert sorted([*larger, *smaller]) == list(range(98))
    assert abs(len(smaller) - share * 98) <= 1
    for name in "abc":
        n = (labels == name).sum()
        assert abs((labels[smaller] == name).sum() - share * n) <= 1
    assert "d" in labels[larger]
    again, other = stratified(labels, share, 0)[1], stratified(labels, share, 1)[1]
    np.testing.assert_array_equal(smaller, again)
    assert not np.array_equal(smaller, other)


def test_repeated_samples():
    found = repeated(["a", "b", "a", "a", "b"], ["x", "x", "x", "y", "x"])
    assert found.tolist() == [False, False, True, False, True]
