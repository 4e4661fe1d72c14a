"""Scores, baselines and splits by hand and beside scikit-learn; temperatures."""

import numpy as np
import pytest

import npformer as nf
from npformer.core.support.wording import shorten_names
from npformer.data.tokenizers import frequent_pairs
from npformer.tasks.estimators import baselines
from npformer.tasks.estimators.calibration import calibrate, factors
from npformer.tasks.estimators.scores import calibration_error, scores_of
from npformer.tasks.estimators.split import find_repeats, stratified_split
from npformer.tasks.reports.names import Glossary
from npformer.tasks.wide import WideSequenceClassifier
from tests.needs import NEEDS


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
    metrics = pytest.importorskip("sklearn.metrics", reason=NEEDS["sklearn"])
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


@pytest.mark.parametrize(
    ("case", "names", "expected"),
    [
        ("all fit", ["a", "b"], ["a", "b"]),
        ("one is long", ["a" * 30, "b"], ["a" * 9 + "…", "b"]),
        ("other ends", ["same begin 1", "same begin 2"], ["same…gin 1", "same…gin 2"]),
        ("other middles", [f"{'a' * 10}{i}{'a' * 10}" for i in "XY"], ["aaaaa… (1)", "aaaaa… (2)"]),
        (
            "numbers, too",
            ["b", *(f"{'a' * 10}{i}{'a' * 10}" for i in "XY")],
            ["b", "aaaaa… (2)", "aaaaa… (3)"],
        ),
    ],
)
def test_long_names_stay_different(case, names, expected):
    assert shorten_names(names, 10) == expected
    assert max(map(len, expected)) <= 10


def test_classes_that_begin_alike_have_rows_of_their_own():
    classes = [f"complaints about the delivery of {what}" for what in ("shoes", "shirts")]
    words = str(scores_of(classes, np.array([0, 1]), np.eye(2)))
    heads = [line.split("  ")[0] for line in words.splitlines() if line.startswith("compl")]
    assert len(heads) == 4
    assert len(set(heads)) == 2
    in_report = Glossary(classes=dict(enumerate(f"{'a' * 40}{name}" for name in classes)))
    assert in_report.label(0) != in_report.label(1)
    assert (in_report.label(-1), len(in_report.label(0))) == ("none", 40)


def test_the_majority(answers):
    scores = baselines.majority(["a", "b"], np.array([0, 1, 1, 1]), np.array([0, 1]))
    assert scores.accuracy == 0.5
    assert scores.confusion.tolist() == [[0, 1], [0, 1]]


def test_words_are_counted(monkeypatch):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    texts = ["good film", "bad film", "good", "bad"] * 5
    y = np.array([1, 0, 1, 0] * 5)
    words = ["good", "bad"], np.array([1, 0])
    scores = baselines.logistic_regression(["no", "yes"], train=(texts, y), test=words)
    assert scores.accuracy == 1.0
    no_words = ["!", "?"], y[:2]
    one_word = ["good"], y[:1]
    assert baselines.logistic_regression(["no", "yes"], train=no_words, test=one_word) is None
    monkeypatch.setitem(__import__("sys").modules, "sklearn.linear_model", None)
    one_class = ["a b"], np.array([0])
    same_class = ["a"], np.array([0])
    assert baselines.logistic_regression(["no", "yes"], train=one_class, test=same_class) is None


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_a_split_keeps_the_shares_of_the_classes(share):
    labels = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 7 + ["d"])
    larger, smaller = stratified_split(labels, share, 0)
    assert sorted([*larger, *smaller]) == list(range(98))
    assert abs(len(smaller) - share * 98) <= 1
    for name in "abc":
        n = (labels == name).sum()
        assert abs((labels[smaller] == name).sum() - share * n) <= 1
    assert "d" in labels[larger]
    again, other = stratified_split(labels, share, 0)[1], stratified_split(labels, share, 1)[1]
    np.testing.assert_array_equal(smaller, again)
    assert not np.array_equal(smaller, other)


def test_repeated_samples():
    is_repeated = find_repeats(["a", "b", "a", "a", "b"], ["x", "x", "x", "y", "x"])
    assert is_repeated.tolist() == [False, False, True, False, True]


WORDS = np.array([[2, 3, 2, 3], [4, 6, 1, 5], [3, 2, 0, 0], [5, 5, 5, 0]])
CONFIG = nf.EncoderConfig(d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=4)


def loss(probabilities, y):
    return -np.log(probabilities[np.arange(len(y)), y]).mean()


def drawn(n=4000, n_classes=3):
    """Return logits, and labels that are drawn from their softmax."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, n_classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return z, p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.mark.parametrize("too_sure", [0.4, 2.5])
def test_the_temperature_is_found(too_sure):
    z, _, y = drawn()
    assert factors(too_sure * z[:, None], y) == pytest.approx(1 / too_sure, 0.08)


def test_two_answers_count_as_much_as_they_are_right():
    z, _, y = drawn()
    noise = np.random.default_rng(1).normal(size=z.shape)
    logits = np.stack([noise, z], axis=1)  # the labels are drawn from the second
    both_factors = factors(logits, y)
    alone = factors(z[:, None], y)[0]
    np.testing.assert_allclose(both_factors, [0.01, 2.0 * alone], rtol=1e-3)  # the least allowed
    np.testing.assert_array_equal(factors(np.stack([z, -z], axis=1), y)[1], 0.01)
    assert factors(np.eye(3)[:, None], np.arange(3)) == 4.0  # all right: the most allowed


def test_the_error_is_that_of_the_confidence():
    _, p, y = drawn()
    right = p.argmax(axis=1) == y
    sure = p.max(axis=1)
    assert calibration_error(right, sure) < 0.03
    assert calibration_error(right, np.ones(len(y))) == pytest.approx(1 - right.mean())
    assert calibration_error(np.array([True, False]), np.array([1.0, 1.0]), 1) == 0.5
    # Who gives one answer to all is as sure as it is right, in whatever order the samples come.
    assert calibration_error(np.arange(40) < 20, np.full(40, 0.5)) == 0.0


@pytest.mark.parametrize("wide", [False, True])
def test_a_model_that_is_too_sure_is_cooled(wide):
    rng = np.random.default_rng(0)
    sizes = {"vocab_size": 7, "dtype": "float64"}
    model = nf.SequenceClassifier(CONFIG, 2, **sizes)
    if wide:
        model = WideSequenceClassifier(CONFIG, 2, n_pairs=2, **sizes)
        model.wide.learn(*frequent_pairs([[2, 3], [3, 2]], 7))
        model.wide.weight.value[...] = rng.normal(size=(9, 2))
    model.classify.weight.value[...] *= 8.0
    x, mask = np.tile(WORDS, (100, 1)), np.tile(WORDS > 0, (100, 1))
    before, y = model.predict_probabilities(x, mask), rng.integers(0, 2, len(x))  # by chance
    calibrate(model, (x, y, mask))
    after = model.predict_probabilities(x, mask)
    assert loss(before, y) > 0.8
    assert loss(after, y) < np.log(2) + 0.01
    np.testing.assert_array_equal(model.encoder.blocks[0].mixer_norm.gamma.value, 1.0)
