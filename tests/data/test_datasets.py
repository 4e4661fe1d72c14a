"""The data in the package: digits and their splits, vowels and sentences."""

from importlib import resources

import numpy as np
import pytest

from npformer.data import SPLITS, digits, sentences, vowels
from tests.needs import NEEDS


@pytest.fixture(scope="module")
def stored():
    file = resources.files("npformer.data").joinpath("digits.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module", params=SPLITS)
def split(request):
    return request.param, digits(request.param)


def rows_of(x, stored):
    """Return the row of each sample in the file; equal images get different rows."""
    rows_of_image = {}
    for i, image in enumerate(stored["images"]):
        rows_of_image.setdefault(image.tobytes(), []).append(i)
    pixels = np.rint((x.astype("float64") + 1.0) * 8.0).astype(stored["images"].dtype)
    return [rows_of_image[image.tobytes()].pop(0) for image in pixels]


def test_sizes(split):
    sizes = {"stratified": (1252, 185, 360), "ordered": (1258, 179, 360)}
    name, data = split
    assert tuple(len(x) for x, _ in (data.train, data.validation, data.test)) == sizes[name]
    assert (data.length, data.n_features, data.n_classes) == (8, 8, 10)
    assert (data.vocab_size, data.labels) == (None, "sequence")


def test_images_are_numbers_from_minus_1_to_1(split):
    _, data = split
    for x, y in (data.train, data.validation, data.test):
        assert x.shape == (len(y), 8, 8)
        assert x.dtype == "float32"
        assert (x.min(), x.max()) == (-1.0, 1.0)


def test_labels_are_the_ten_digits(split):
    _, data = split
    for _, y in (data.train, data.validation, data.test):
        assert y.dtype == "int64"
        assert set(y.tolist()) == set(range(10))


def test_float64_holds_the_same_numbers():
    single, double = digits(), digits(dtype="float64")
    assert double.train[0].dtype == "float64"
    np.testing.assert_array_equal(single.train[0], double.train[0])


def test_each_image_is_in_exactly_one_part(split, stored):
    _, data = split
    x = np.concatenate([data.train[0], data.validation[0], data.test[0]])
    y = np.concatenate([data.train[1], data.validation[1], data.test[1]])
    rows = rows_of(x, stored)
    assert sorted(rows) == list(range(1797))
    np.testing.assert_array_equal(y, stored["labels"][rows])


def test_the_test_part_is_as_in_the_file(split, stored):
    name, data = split
    x, y = data.test
    rows = stored["stratified_test"] if name == "stratified" else slice(-360, None)
    np.testing.assert_array_equal(x, stored["images"][rows].astype("float32") / 8 - 1)
    np.testing.assert_array_equal(y, stored["labels"][rows])


def test_stratified_validation_is_every_eighth_training_sample_of_a_class(stored):
    rows = stored["stratified_train"]
    held_out = []
    for label in range(10):
        rows_of_label = rows[stored["labels"][rows] == label]
        held_out += [*rows_of_label[::8]]
    expected_rows = rows[np.isin(rows, held_out)]
    expected = stored["images"][expected_rows] / 8.0 - 1.0
    np.testing.assert_array_equal(digits().validation[0], expected)


def test_ordered_parts_follow_one_another_in_the_file(stored):
    data = digits("ordered")
    x = np.concatenate([data.train[0], data.validation[0], data.test[0]])
    np.testing.assert_array_equal(x, stored["images"].astype("float32") / 8 - 1)


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split is 'random'; expected one of 'stratified', 'ord"):
        digits("random")


def test_an_unknown_dtype_of_digits_is_refused():
    with pytest.raises(ValueError, match="dtype is 'int64'; expected one of 'float32', 'float64'"):
        digits(dtype="int64")


def test_each_call_returns_new_arrays():
    digits().train[0][...] = 0.0
    assert digits().train[0].min() == -1.0


def test_digits_equal_those_of_scikit_learn(stored):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    from sklearn.datasets import load_digits

    expected = load_digits()
    np.testing.assert_array_equal(stored["images"], expected.images)
    np.testing.assert_array_equal(stored["labels"], expected.target)


def test_the_stratified_split_equals_that_of_scikit_learn(stored):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(1797), test_size=0.2, random_state=0, stratify=stored["labels"]
    )
    np.testing.assert_array_equal(stored["stratified_train"], train)
    np.testing.assert_array_equal(stored["stratified_test"], test)


def test_vowels_have_the_published_sizes():
    data = vowels()
    for (series, labels), n, longest in ((data.train, 270, 26), (data.test, 370, 29)):
        assert len(series) == len(labels) == n
        lengths = [len(steps) for steps in series]
        assert (min(lengths), max(lengths)) == (7, longest)
        assert {steps.shape[1] for steps in series} == {12}


def test_vowels_have_the_published_number_of_series_of_each_speaker():
    data = vowels()
    speakers = [str(k) for k in range(1, 10)]
    training_counts = [data.train[1].count(speaker) for speaker in speakers]
    test_counts = [data.test[1].count(speaker) for speaker in speakers]
    assert training_counts == [30] * 9
    assert test_counts == [31, 35, 88, 44, 29, 24, 40, 50, 29]


def test_values_of_vowels_are_as_in_the_source():
    first = vowels().train[0][0]
    assert first.shape == (20, 12)
    assert first[:3, 0].tolist() == [1.860936, 1.891651, 1.939205]
    assert first[-1, :2].tolist() == [1.261441, -0.63835]
    everything = np.concatenate([*vowels().train[0], *vowels().test[0]])
    assert (everything.min(), everything.max()) == (-1.852765, 2.203141)


def test_vowels_in_float32_are_rounded():
    single = vowels("float32").test[0][3]
    double = vowels().test[0][3]
    assert (single.dtype, double.dtype) == ("float32", "float64")
    np.testing.assert_array_equal(single, double.astype("float32"))


def test_an_unknown_dtype_of_vowels_is_refused():
    with pytest.raises(ValueError, match="dtype"):
        vowels("int8")


def test_numbers_of_sentences():
    train, test = sentences().train, sentences().test
    assert len(train[0]) == len(train[1]) == 2386
    assert len(test[0]) == len(test[1]) == 596
    with_repeated = sentences(repeated=True)
    assert len(with_repeated.train[0]) + len(with_repeated.test[0]) == 3000


def test_sentences_are_different_texts():
    data = sentences()
    texts = data.train[0] + data.test[0]
    assert "Good case, Excellent value." in texts
    assert all(isinstance(text, str) and text.strip() for text in texts)
    assert len(set(texts)) == len(texts)


def test_half_of_the_sentences_are_positive():
    data = sentences()
    for _, labels in (data.train, data.test):
        assert set(labels) == {"negative", "positive"}
        assert abs(np.mean([label == "positive" for label in labels]) - 0.5) < 0.005


def test_the_seed_decides_the_parts_of_the_sentences():
    first = sentences(0)
    second = sentences(1)
    assert sentences().test == first.test != second.test
    assert labelled_texts(first) == labelled_texts(second)


def labelled_texts(data):
    """Return all pairs of a text and its label."""
    return {*zip(*data.train, strict=True), *zip(*data.test, strict=True)}


def test_the_fraction_of_test_sentences_can_be_chosen():
    assert len(sentences(test=0.5).test[0]) == 1491


@pytest.mark.parametrize("test", [0.0, 1.0])
def test_a_fraction_that_leaves_a_part_empty_is_refused(test):
    with pytest.raises(ValueError, match=f"test is {test:.0f}"):
        sentences(test=test)
