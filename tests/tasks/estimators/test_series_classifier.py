"""SeriesClassifier: from series of numbers to labels."""

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators import NotTrainedError
from tests.needs import NEEDS
from tests.tasks.estimators.conftest import QUICK, SIZES


def series_and_labels(n=80, seed=0, offset=0.0):
    """Return rising and falling series of 2 features and different lengths."""
    rng = np.random.default_rng(seed)
    labels = ["down", "up"] * (n // 2)
    series = []
    for label in labels:
        line = np.linspace(0, 1, rng.integers(4, 12)) * (1 if label == "up" else -1)
        noise = rng.normal(size=(len(line), 2))
        series.append(np.stack([line, 1000 + 50 * noise[:, 1]], axis=1) + offset)
    return series, labels


@pytest.fixture(scope="module")
def trained():
    return nf.SeriesClassifier(SIZES, members=1).fit(*series_and_labels(), **QUICK)


def test_it_learns_series_of_different_lengths(trained):
    series, labels = series_and_labels(seed=1)
    assert trained.evaluate(series, labels).accuracy > 0.9
    assert set(trained.predict(series[:4])) <= {"down", "up"}
    alone = np.concatenate([trained.predict_probabilities([steps]) for steps in series[:5]])
    np.testing.assert_allclose(trained.predict_probabilities(series)[:5], alone, rtol=1e-4)


def test_features_are_scaled_by_the_training_part_alone(trained):
    series, labels = series_and_labels()
    shifted = [sequence + 1e6 for sequence in series[:10]]
    classifier = nf.SeriesClassifier(SIZES, members=1).fit(
        series, labels, **QUICK | {"epochs": 1, "validation": (shifted, labels[:10])}
    )
    steps = np.concatenate(series)
    np.testing.assert_allclose(classifier.reader_.mean, steps.mean(axis=0))
    np.testing.assert_allclose(classifier.reader_.deviation, steps.std(axis=0))
    x, mask = classifier.arrays(series)
    np.testing.assert_allclose(x[mask].mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(x[mask].std(axis=0), 1.0, rtol=1e-5)
    assert (x[~mask] == 0.0).all()


def test_it_comes_back_from_its_file(trained, tmp_path):
    nf.save(trained, tmp_path / "model.safetensors")
    back = nf.load(tmp_path / "model.safetensors")
    series, _ = series_and_labels(seed=2)
    np.testing.assert_array_equal(*(m.predict_probabilities(series) for m in (back, trained)))
    assert isinstance(back, nf.SeriesClassifier)


@pytest.fixture(scope="module")
def of_one_feature():
    """Return a classifier of series of one feature, and its series."""
    x = np.random.default_rng(0).normal(size=(40, 6)) + np.arange(40)[:, None] % 2
    options = QUICK | {"epochs": 1}
    return nf.SeriesClassifier(SIZES, members=1).fit(x, np.arange(40) % 2, **options), x


def test_an_array_of_two_axes_has_one_feature(of_one_feature):
    classifier, x = of_one_feature
    assert classifier.model.n_features == 1
    assert classifier.predict(x[..., None]).shape == (40,)


def test_a_row_of_a_data_frame_is_a_series(of_one_feature):
    classifier, x = of_one_feature
    pandas = pytest.importorskip("pandas", reason=NEEDS["pandas"])
    frame = pandas.DataFrame(x, columns=[f"t{i}" for i in range(6)])
    np.testing.assert_array_equal(classifier.predict_proba(frame), classifier.predict_proba(x))


def test_another_training_may_have_other_features(trained):
    series, labels = series_and_labels(40)
    classifier = nf.SeriesClassifier(SIZES, members=1).fit(series, labels, **QUICK | {"epochs": 1})
    with pytest.raises(ValueError, match="only the class"):
        classifier.fit([steps[:, :1] for steps in series], ["up"] * 40)
    assert len(classifier.reader_.mean) == 2  # a mistake changes nothing
    classifier.fit([steps[:, :1] for steps in series], labels, **QUICK | {"epochs": 1})
    assert classifier.model.n_features == 1


TWO = [np.zeros((3, 2)), np.zeros((3, 1))]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: nf.SeriesClassifier().predict([[1.0]]), NotTrainedError, "not been trained"),
        (lambda t: nf.SeriesClassifier(scale=1).check(), TypeError, "scale is 1"),
        (lambda t: t.predict("series"), TypeError, "samples is a str; expected a list with an"),
        (lambda t: t.predict([np.zeros((3, 5))]), ValueError, r"samples\[0\] has 5 features"),
        (
            lambda t: t.predict(np.zeros((3, 2))),
            ValueError,
            r"1 feat.* a single one write \[samples\]",
        ),
        (lambda t: t.predict([[[1.0, 2.0], [3.0]]]), ValueError, r"samples\[0\] is object"),
        (lambda t: t.predict([["a"]]), ValueError, r"samples\[0\] is <U1 \(1,\); expected numbers"),
        (lambda t: t.predict([np.zeros((0, 2))]), ValueError, r"samples\[0\] is empty"),
        (lambda t: t.predict([np.eye(2), [[0, 1], [0, np.nan]]]), ValueError, r"\[1\] has NaN or"),
        (lambda t: t.predict([np.zeros((50, 2))]), ValueError, "50 steps; expected at most 2"),
        (lambda t: nf.SeriesClassifier().fit(TWO, ["a", "b"]), ValueError, r"\[1\] has 1 features"),
    ],
)
def test_mistakes_are_explained(trained, call, error, words):
    with pytest.raises(error, match=words):
        call(trained)
