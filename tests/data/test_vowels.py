"""The vowels: series as the source has them."""

import numpy as np
import pytest

from npformer.data import vowels


def test_sizes():
    data = vowels()
    for (series, labels), n, longest in ((data.train, 270, 26), (data.test, 370, 29)):
        assert len(series) == len(labels) == n
        lengths = [len(each) for each in series]
        assert (min(lengths), max(lengths)) == (7, longest)
        assert {each.shape[1] for each in series} == {12}
        assert set(labels) == set("123456789")


def test_speakers_are_as_published():
    (_, train), (_, test) = vowels().train, vowels().test
    assert [train.count(str(k)) for k in range(1, 10)] == [30] * 9
    assert [test.count(str(k)) for k in range(1, 10)] == [31, 35, 88, 44, 29, 24, 40, 50, 29]


def test_values_are_as_in_the_source():
    first = vowels().train[0][0]
    assert first.shape == (20, 12)
    assert first[:3, 0].tolist() == [1.860936, 1.891651, 1.939205]
    assert first[-1, :2].tolist() == [1.261441, -0.63835]
    everything = np.concatenate([*vowels().train[0], *vowels().test[0]])
    assert (everything.min(), everything.max()) == (-1.852765, 2.203141)


def test_dtype():
    single, double = vowels("float32").test[0][3], vowels().test[0][3]
    assert (single.dtype, double.dtype) == ("float32", "float64")
    np.testing.assert_array_equal(single, double.astype("float32"))
    with pytest.raises(ValueError, match="dtype"):
        vowels("int8")
