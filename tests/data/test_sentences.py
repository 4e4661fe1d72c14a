"""The sentences: what is in the file, and how it is parted."""

import numpy as np
import pytest

from npformer.data import sentences


def test_sizes():
    data = sentences()
    sizes = [len(column) for part in (data.train, data.test) for column in part]
    assert sizes == [2386, 2386, 596, 596]
    assert (
        sum(map(len, (sentences(repeated=True).train[0], sentences(repeated=True).test[0]))) == 3000
    )


def test_texts_and_labels():
    data = sentences()
    texts = data.train[0] + data.test[0]
    assert "Good case, Excellent value." in texts
    assert all(isinstance(text, str) and text.strip() for text in texts)
    assert len(set(texts)) == len(texts)
    for _, labels in (data.train, data.test):
        assert set(labels) == {"negative", "positive"}
        assert abs(np.mean([label == "positive" for label in labels]) - 0.5) < 0.005


def test_the_seed_decides_the_parts():
    assert sentences().test == sentences(0).test
    assert sentences().test != sentences(1).test
    together = [
        {*zip(*s.train, strict=True), *zip(*s.test, strict=True)} for s in map(sentences, (0, 1))
    ]
    assert together[0] == together[1]


def test_shares():
    assert len(sentences(test=0.5).test[0]) == 1491
    with pytest.raises(ValueError, match="test is 1"):
        sentences(test=1.0)
    with pytest.raises(ValueError, match="test is 0"):
        sentences(test=0.0)
