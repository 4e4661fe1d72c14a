"""Texts, through a tokenizer."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from npformer.data.tokenizers import WordTokenizer


@pytest.fixture
def small(small):
    """Make a small estimator without dropout, which is for more texts and larger models."""

    def make(**changes):
        return small_(**({"dropout": 0.0, "learning_rate": 0.03} | changes))

    small_ = small
    return make


def test_texts_in_any_container(small, texts):
    x, y = texts
    classifier = small(max_iter=40).fit(x, y)
    assert classifier.inputs_ == "text"
    assert not hasattr(classifier, "n_features_in_")
    assert classifier.score(x, y) == 1.0
    p = classifier.predict_proba(x)
    for same in (tuple(x), np.array(x), np.array(x, object), np.array(x)[:, None]):
        np.testing.assert_array_equal(classifier.predict_proba(same), p)
        np.testing.assert_array_equal(small(max_iter=40).fit(same, y).predict_proba(x), p)


def test_texts_in_a_frame(small, texts):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = texts
    frame = pandas.DataFrame({"text": x, "label": y})
    p = small().fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(small().fit(frame["text"], y).predict_proba(frame["text"]), p)
    classifier = small().fit(frame[["text"]], frame["label"])
    assert classifier.feature_names_in_.tolist() == ["text"]
    np.testing.assert_array_equal(classifier.predict_proba(frame[["text"]]), p)
    with pytest.raises(ValueError, match="Choose the column"):
        small().fit(frame, y)
    chosen = make_pipeline(make_column_transformer(("passthrough", ["text"])), small())
    np.testing.assert_array_equal(chosen.fit(frame, y).predict_proba(frame), p)


def test_cross_validation_search_clone_and_pickle(small, texts):
    x, y = texts
    assert cross_val_score(small(max_iter=30), x, y, cv=2).mean() > 0.9
    search = GridSearchCV(small(max_iter=3), {"mixer": ["attention", "fourier"]}, cv=2).fit(x, y)
    assert search.best_params_["mixer"] in ("attention", "fourier")
    classifier = small().fit(x, y)
    p = classifier.predict_proba(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(x), p)
    np.testing.assert_array_equal(clone(classifier).fit(x, y).predict_proba(x), p)


def test_a_tokenizer_of_ones_own_is_used_as_it_is(small, texts):
    x, y = texts
    tokenizer = WordTokenizer(["great", "fine", "lovely", "awful"])
    classifier = small(tokenizer=tokenizer).fit(x, y)
    assert classifier.model_.vocab_size == 6
    assert classifier.reader_.tokenizer is tokenizer
    assert small(vocab_size=5).fit(x, y).model_.vocab_size == 5
    with pytest.raises(ValueError, match="wordpiece"):
        small(tokenizer="words").fit(x, y)


def test_partial_fit_keeps_the_vocabulary_of_the_first_call(small, texts):
    x, y = texts
    classifier = small().partial_fit(x[:20], y[:20], classes=["bad", "good"])
    size = classifier.model_.vocab_size
    for _ in range(12):
        classifier.partial_fit(x[20:], y[20:])
    assert classifier.model_.vocab_size == size
    assert classifier.score(x, y) > 0.9


def test_long_texts_are_cut_with_a_warning(small, texts):
    x, y = texts
    classifier = small(max_len=4, max_iter=1)
    with pytest.warns(UserWarning, match="40 of 40 texts have more than 4 tokens.*max_len"):
        classifier.fit(x, y)
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        small(max_len=60, max_iter=1).fit(x, y).predict(["short", "longer " * 61])


def test_a_text_of_unknown_words_or_none_has_an_answer(small, texts):
    classifier = small().fit(*texts)
    assert np.isfinite(classifier.predict_proba(["xyzzy plugh", ""])).all()
