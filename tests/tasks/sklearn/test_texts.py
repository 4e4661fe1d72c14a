"""Texts, through a tokenizer."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
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
    p, brief = classifier.predict_proba(x), small(max_iter=2).fit(x, y).predict_proba(x)
    for same in (tuple(x), np.array(x), np.array(x, object), np.array(x)[:, None]):
        np.testing.assert_array_equal(classifier.predict_proba(same), p)
        np.testing.assert_array_equal(small(max_iter=2).fit(same, y).predict_proba(x), brief)


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


def test_a_tokenizer_of_ones_own_is_used_as_it_is(small, texts):
    x, y = texts
    tokenizer = WordTokenizer(["great", "fine", "lovely", "awful"])
    classifier = small(tokenizer=tokenizer).fit(x, y)
    assert classifier.model_.vocab_size == 6
    assert classifier.reader_.tokenizer is tokenizer
    assert small(vocab_size=5).fit(x, y).model_.vocab_size == 5
    with pytest.raises(ValueError, match="wordpiece"):
        small(tokenizer="words").fit(x, y)
