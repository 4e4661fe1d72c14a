"""The data of the package: digits and who sees which part, vowels as published, sentences."""

from importlib import resources

import numpy as np
import pytest

from npformer.data import SPLITS, digits, sentences, vowels
from tests.needs import NEEDS


@pytest.fixture(scope="module")
def stored():
    file = resources.files("npformer.data").joinpath("digits.npz")
    with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module", params=SPLITS)
def split(request):
    return request.param, digits(request.param)


def rows_of(x, stored):
    """Return where in the file each sample stands; equal images take turns."""
    places = {}
    for i, image in enumerate(stored["images"]):
        places.setdefault(image.tobytes(), []).append(i)
    pixels = np.rint((x.astype("float64") + 1.0) * 8.0).astype(stored["images"].dtype)
    return [places[image.tobytes()].pop(0) for image in pixels]


def test_sizes_types_and_ranges(split):
    sizes = {"stratified": (1252, 185, 360), "ordered": (1258, 179, 360)}
    name, data = split
    assert tuple(len(x) for x, _ in (data.train, data.validation, data.test)) == sizes[name]
    assert (data.length, data.n_features, data.n_classes) == (8, 8, 10)
    assert (data.vocab_size, data.labels) == (None, "sequence")
    for x, y in (data.train, data.validation, data.test):
        assert x.shape == (len(y), 8, 8)
        assert (x.dtype, y.dtype) == ("float32", "int64")
        assert (x.min(), x.max()) == (-1.0, 1.0)
        assert set(y.tolist()) == set(range(10))


def test_float64_holds_the_same_numbers():
    single, double = digits(), digits(dtype="float64")
    assert double.train[0].dtype == "float64"
    np.testing.assert_array_equal(single.train[0], double.train[0])


def test_the_parts_are_disjoint_and_hold_everything(split, stored):
    data = split[1]
    x, y = map(np.concatenate, zip(data.train, data.validation, data.test, strict=True))
    rows = rows_of(x, stored)
    assert sorted(rows) == list(range(1797))
    np.testing.assert_array_equal(y, stored["labels"][rows])


def test_test_parts_are_those_of_the_file(split, stored):
    name, data = split
    x, y = data.test
    rows = stored["stratified_test"] if name == "stratified" else slice(-360, None)
    np.testing.assert_array_equal(x, stored["images"][rows].astype("float32") / 8 - 1)
    np.testing.assert_array_equal(y, stored["labels"][rows])


def test_stratified_validation_is_every_eighth_training_sample_of_a_class(stored):
    rows = stored["stratified_train"]
    held_out = [r for c in range(10) for r in rows[stored["labels"][rows] == c][::8]]
    in_order = rows[np.isin(rows, held_out)]
    np.testing.assert_array_equal(digits().validation[0], stored["images"][in_order] / 8.0 - 1.0)


def test_ordered_parts_follow_one_another_in_the_file(stored):
    data = digits("ordered")
    x = np.concatenate([data.train[0], data.validation[0], data.test[0]])
    np.testing.assert_array_equal(x, stored["images"].astype("float32") / 8 - 1)


def test_an_unknown_split_or_dtype_is_refused_in_words():
    with pytest.raises(ValueError, match="split is 'random'; expected one of 'stratified', 'ord"):
        digits("random")
    with pytest.raises(ValueError, match="dtype is 'int64'; expected one of 'float32', 'float64'"):
        digits(dtype="int64")


def test_a_call_gives_arrays_of_its_own():
    digits().train[0][...] = 0.0
    assert digits().train[0].min() == -1.0


def test_images_labels_and_the_stratified_split_are_scikit_learns(stored):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    theirs = load_digits()
    np.testing.assert_array_equal(stored["images"], theirs.images)
    np.testing.assert_array_equal(stored["labels"], theirs.target)
    train, test = train_test_split(
        np.arange(1797), test_size=0.2, random_state=0, stratify=stored["labels"]
    )
    np.testing.assert_array_equal(stored["stratified_train"], train)
    np.testing.assert_array_equal(stored["stratified_test"], test)


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
