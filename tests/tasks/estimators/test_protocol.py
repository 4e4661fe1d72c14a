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
def test_arguments_stay_as_they_are_given_and_can_be_set(kind):
    config = dict(SIZES)
    estimator = kind(config, seed=3)
    parameters = estimator.get_params()
    assert parameters["config"] is config
    assert parameters["seed"] == 3
    assert estimator.get_params(deep=False) == parameters
    assert estimator.set_params(seed=-1, dtype="float64") is estimator
    assert kind(**estimator.get_params()).get_params() == {
        **parameters,
        "seed": -1,
        "dtype": "float64",
    }
    with pytest.raises(ValueError, match=r"'sead'.*Did you mean 'seed'"):
        estimator.set_params(sead=1)
    if kind is nf.TextWriter:
        with pytest.raises(ValueError, match="seed is -1"):
            estimator.fit("a text")
    else:
        with pytest.raises(ValueError, match="seed is -1"):
            estimator.fit(["a", "b"], ["c", "d"])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_is_missing_before(kind):
    estimator = kind()
    for name in ("model", "history_"):
        assert not hasattr(estimator, name)
        with pytest.raises(NotTrainedError):
            getattr(estimator, name)
    assert not hasattr(estimator, "models_")


def test_fit_returns_the_classifier_and_keeps_what_it_learned():
    texts, labels = texts_and_labels(40)
    one = small()
    assert one.fit(texts, labels, **FEW) is one
    assert one.classes_.tolist() == ["food", "weather"]
    assert len(one.history_.train_loss) == 3
    assert one.get_params() == small().get_params()
    np.testing.assert_array_equal(one.predict_proba(texts), one.predict_probabilities(texts))
    assert one.score(texts, labels) == (one.predict(texts) == np.array(labels)).mean()


def test_writers_are_scored():
    text = "the cat sat on the mat. " * 20
    writer = nf.TextWriter(SIZES | {"max_len": 16}).fit(text, epochs=1, progress=False)
    assert writer.score(text) == -writer.evaluate(text).nats
    sources, targets = ["ab", "ba", "bb", "aa"] * 4, ["b", "a", "b", "a"] * 4
    translator = nf.TextTranslator(SIZES).fit(sources, targets, epochs=1, progress=False)
    assert translator.score(sources, targets) == translator.evaluate(sources, targets).exact
    assert translator.predict(sources[:2]) == translator.translate(sources[:2])


def test_scikit_learn_clones_searches_and_validates_them():
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    texts, labels = texts_and_labels(40)
    one = small().fit(texts, labels, **FEW)
    assert is_classifier(one)
    assert all(isinstance(clone(kind()), Estimator) for kind in KINDS)
    copy = clone(one)
    assert not hasattr(copy, "models_")
    again = copy.fit(texts, labels, **FEW)
    np.testing.assert_array_equal(again.predict_proba(texts), one.predict_proba(texts))
    assert cross_val_score(small(), texts, labels, cv=2, params=FEW).mean() > 0.5
    shares = cross_val_predict(small(), texts, labels, cv=2, method="predict_proba", params=FEW)
    assert shares.shape == (40, 2)
    grid = {"config": [SIZES, {**SIZES, "mixer": "fourier"}], "wide": [True, False]}
    search = GridSearchCV(small(), grid, cv=2, error_score="raise").fit(texts, labels, **FEW)
    assert set(search.best_params_) == set(grid)
    assert search.predict(texts).shape == (40,)
    pipeline = make_pipeline(FunctionTransformer(list), small())
    pipeline.fit(texts, labels, **{f"textclassifier__{name}": v for name, v in FEW.items()})
    assert pipeline.score(texts, labels) > 0.5
    series = np.random.default_rng(0).normal(size=(40, 5)) + np.arange(40)[:, None] % 2
    of_series = nf.SeriesClassifier(SIZES, members=1)
    assert cross_val_score(of_series, series, np.arange(40) % 2, cv=2, params=FEW).shape == (2,)


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
