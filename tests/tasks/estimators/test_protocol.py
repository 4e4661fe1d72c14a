"""Estimators keep scikit-learn's protocol, and need no scikit-learn for it."""

import subprocess
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators import Estimator, NotTrainedError
from tests.needs import NEEDS
from tests.tasks.estimators.conftest import QUICK, SIZES, texts_and_labels

KINDS = (nf.TextClassifier, nf.SeriesClassifier, nf.TextWriter, nf.TextTranslator)
FEW = QUICK | {"validation": None, "epochs": 3, "calibration": 0.0}


def small(**changes):
    return nf.TextClassifier(SIZES, **{"members": 1, "ngrams": 0, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_stay_as_they_are_given(kind):
    config = dict(SIZES)
    estimator = kind(config, seed=3)
    parameters = estimator.get_params()
    assert parameters["config"] is config
    assert parameters["seed"] == 3
    assert estimator.get_params(deep=False) == parameters


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_can_be_set(kind):
    estimator = kind(dict(SIZES), seed=3)
    parameters = estimator.get_params()
    assert estimator.set_params(seed=-1, dtype="float64") is estimator
    changed = kind(**estimator.get_params())
    assert changed.get_params() == {**parameters, "seed": -1, "dtype": "float64"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_argument_cannot_be_set(kind):
    with pytest.raises(ValueError, match=r"'sead'.*Did you mean 'seed'"):
        kind().set_params(sead=1)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_are_checked_by_fit(kind):
    estimator = kind(dict(SIZES), seed=-1)
    labels = () if kind is nf.TextWriter else (["c", "d"],)
    with pytest.raises(ValueError, match="seed is -1"):
        estimator.fit(["a", "b"], *labels)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_is_missing_before(kind):
    estimator = kind()
    for name in ("model", "history_"):
        assert not hasattr(estimator, name)
        with pytest.raises(NotTrainedError):
            getattr(estimator, name)
    assert not hasattr(estimator, "models_")


@pytest.fixture(scope="module")
def few_trained():
    """Return a classifier that was trained briefly."""
    classifier = small()
    assert classifier.fit(*texts_and_labels(40), **FEW) is classifier
    return classifier


def test_a_classifier_keeps_what_it_learned(few_trained):
    assert few_trained.classes_.tolist() == ["food", "weather"]
    assert len(few_trained.history_.train_loss) == 3


def test_fit_changes_no_argument(few_trained):
    assert few_trained.get_params() == small().get_params()


def test_predict_proba_predicts_probabilities(few_trained):
    texts, _ = texts_and_labels(40)
    probabilities = few_trained.predict_probabilities(texts)
    np.testing.assert_array_equal(few_trained.predict_proba(texts), probabilities)


def test_the_score_is_the_accuracy(few_trained):
    texts, labels = texts_and_labels(40)
    accuracy = (few_trained.predict(texts) == np.array(labels)).mean()
    assert few_trained.score(texts, labels) == accuracy


def test_writers_are_scored():
    text = "the cat sat on the mat. " * 20
    writer = nf.TextWriter(SIZES | {"max_len": 16}).fit(text, epochs=1, progress=False)
    assert writer.score(text) == -writer.evaluate(text).nats
    sources, targets = ["ab", "ba", "bb", "aa"] * 4, ["b", "a", "b", "a"] * 4
    translator = nf.TextTranslator(SIZES).fit(sources, targets, epochs=1, progress=False)
    assert translator.score(sources, targets) == translator.evaluate(sources, targets).exact
    assert translator.predict(sources[:2]) == translator.translate(sources[:2])


@pytest.fixture
def sklearn():
    return pytest.importorskip("sklearn", reason=NEEDS["sklearn"])


def test_scikit_learn_takes_a_classifier_for_one(sklearn):
    assert sklearn.base.is_classifier(small())


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_clones_estimators(sklearn, kind):
    assert isinstance(sklearn.base.clone(kind()), Estimator)


def test_a_clone_is_not_trained(sklearn, few_trained):
    assert not hasattr(sklearn.base.clone(few_trained), "models_")


def test_a_clone_trains_to_the_same(sklearn, few_trained):
    texts, labels = texts_and_labels(40)
    copy = sklearn.base.clone(few_trained).fit(texts, labels, **FEW)
    np.testing.assert_array_equal(copy.predict_proba(texts), few_trained.predict_proba(texts))


def test_scikit_learn_validates_text_classifiers(sklearn):
    from sklearn.model_selection import cross_val_predict, cross_val_score

    texts, labels = texts_and_labels(40)
    assert cross_val_score(small(), texts, labels, cv=2, params=FEW).mean() > 0.5
    shares = cross_val_predict(small(), texts, labels, cv=2, method="predict_proba", params=FEW)
    assert shares.shape == (40, 2)


def test_scikit_learn_validates_series_classifiers(sklearn):
    from sklearn.model_selection import cross_val_score

    series = np.random.default_rng(0).normal(size=(40, 5)) + np.arange(40)[:, None] % 2
    classifier = nf.SeriesClassifier(SIZES, members=1)
    assert cross_val_score(classifier, series, np.arange(40) % 2, cv=2, params=FEW).shape == (2,)


def test_scikit_learn_searches_arguments(sklearn):
    from sklearn.model_selection import GridSearchCV

    texts, labels = texts_and_labels(40)
    grid = {"config": [SIZES, {**SIZES, "mixer": "fourier"}], "wide": [True, False]}
    search = GridSearchCV(small(), grid, cv=2, error_score="raise").fit(texts, labels, **FEW)
    assert set(search.best_params_) == set(grid)
    assert search.predict(texts).shape == (40,)


def test_a_classifier_ends_a_pipeline(sklearn):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    texts, labels = texts_and_labels(40)
    pipeline = make_pipeline(FunctionTransformer(list), small())
    pipeline.fit(texts, labels, **{f"textclassifier__{name}": v for name, v in FEW.items()})
    assert pipeline.score(texts, labels) > 0.5


def test_it_imports_no_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import npformer as nf
one = nf.TextClassifier({"d_model": 8, "n_heads": 2, "d_ff": 8}, members=1)
one.fit(["a b", "c d"] * 4, ["x", "y"] * 4, epochs=1, progress=False)
print(one.set_params(seed=1).get_params()["seed"], one.score(["a b"], ["x"]) >= 0.0)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "1 True\n"
