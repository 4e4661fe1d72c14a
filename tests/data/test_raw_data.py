"""Raw data of the package: vowels as the source has them, and sentences in two parts."""

import numpy as np
import pytest

from npformer.data import sentences, vowels


def test_vowels_have_the_published_sizes_and_speakers():
    data = vowels()
    for (series, labels), n, longest in ((data.train, 270, 26), (data.test, 370, 29)):
        assert len(series) == len(labels) == n
        lengths = [len(each) for each in series]
        assert (min(lengths), max(lengths)) == (7, longest)
        assert {each.shape[1] for each in series} == {12}
    speakers = [str(k) for k in range(1, 10)]
    assert [data.train[1].count(each) for each in speakers] == [30] * 9
    assert [data.test[1].count(each) for each in speakers] == [31, 35, 88, 44, 29, 24, 40, 50, 29]


def test_values_of_vowels_are_as_in_the_source():
    first = vowels().train[0][0]
    assert first.shape == (20, 12)
    assert first[:3, 0].tolist() == [1.860936, 1.891651, 1.939205]
    assert first[-1, :2].tolist() == [1.261441, -0.63835]
    everything = np.concatenate([*vowels().train[0], *vowels().test[0]])
    assert (everything.min(), everything.max()) == (-1.852765, 2.203141)
    single, double = vowels("float32").test[0][3], vowels().test[0][3]
    assert (single.dtype, double.dtype) == ("float32", "float64")
    np.testing.assert_array_equal(single, double.astype("float32"))
    with pytest.raises(ValueError, match="dtype"):
        vowels("int8")


def test_sentences_are_different_texts_and_half_of_them_positive():
    data = sentences()
    sizes = [len(column) for part in (data.train, data.test) for column in part]
    assert sizes == [2386, 2386, 596, 596]
    whole = sentences(repeated=True)
    assert len(whole.train[0]) + len(whole.test[0]) == 3000
    texts = data.train[0] + data.test[0]
    assert "Good case, Excellent value." in texts
    assert all(isinstance(text, str) and text.strip() for text in texts)
    assert len(set(texts)) == len(texts)
    for _, labels in (data.train, data.test):
        assert set(labels) == {"negative", "positive"}
        assert abs(np.mean([label == "positive" for label in labels]) - 0.5) < 0.005


def test_the_seed_decides_the_parts_of_the_sentences():
    one, other = sentences(0), sentences(1)
    assert sentences().test == one.test != other.test
    together = [{*zip(*s.train, strict=True), *zip(*s.test, strict=True)} for s in (one, other)]
    assert together[0] == together[1]
    assert len(sentences(test=0.5).test[0]) == 1491
    for test in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"test is {test:.0f}"):
            sentences(test=test)
