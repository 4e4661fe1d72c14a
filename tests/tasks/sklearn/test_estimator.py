"""EncoderClassifier learns, and says what it learned, as scikit-learn's own estimators do."""

import numpy as np
import pytest
from npformer.sklearn import EncoderClassifier
from sklearn.datasets import load_iris
from sklearn.utils import check_random_state

import npformer as nf
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.fitting_mixers import usual_pooling
from npformer.tasks.estimators.split import stratified_split


def parts_of(y):
    """Return the parts that random_state=0 makes of labels: to train on, and held out."""
    return stratified_split(y, 0.1, np.random.default_rng(check_random_state(0).randint(2**31 - 1)))


def test_token_ids(small, ids):
    x, y = ids
    classifier = small(max_iter=30).fit(x, y)
    assert classifier.inputs_ == "tokens"
    assert classifier.classes_.tolist() == ["high", "low"]
    assert classifier.n_features_in_ == 6
    assert classifier.score(x, y) == 1.0
    assert set(classifier.predict(x)) == {"high", "low"}
    assert classifier.model_.vocab_size == 10
    assert isinstance(classifier.model_, nf.SequenceClassifier)


def test_whole_numbers_of_a_float_dtype_are_ids_if_one_says_so(small, ids):
    x, y = ids
    one = small(inputs="tokens").fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(small(inputs="tokens").fit(x * 1.0, y).predict_proba(x), one)
    assert small().fit(x * 1.0, y).inputs_ == "series"


@pytest.mark.parametrize("mixer", ["attention", "fourier", ("identity", "dense_synthesizer")])
def test_series(small, series, mixer):
    x, y = series
    classifier = small(mixer=mixer, n_layers=1 if isinstance(mixer, str) else 2, max_iter=40)
    classifier.fit(x, y)
    assert classifier.inputs_ == "series"
    assert classifier.n_features_in_ == 2
    assert classifier.model_.pooling == "flatten"
    assert classifier.score(x, y) > 0.9
    p = classifier.predict_proba(x)
    assert p.dtype == "float32"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.exp(classifier.predict_log_proba(x)), p)


def test_series_are_scaled_by_what_is_trained_on(small, rng):
    x = rng.normal(5.0, [1.0, 100.0, 0.0], (100, 3))
    y = np.arange(100) % 2
    train, _ = parts_of(y)
    for early_stopping, rows in ((True, train), (False, np.arange(100))):
        reader = small(early_stopping=early_stopping).fit(x, y).reader_
        np.testing.assert_allclose(reader.mean, x[rows].mean(axis=0))
        deviations = [*x[rows, :2].std(axis=0), 1.0]  # one is constant
        np.testing.assert_allclose(reader.deviation, deviations)
        scaled, _ = reader.read(x[rows])
        np.testing.assert_allclose(scaled[:, :2, 0].std(axis=0), 1.0, rtol=1e-5)


def test_series_can_be_left_as_they_are(small, rng):
    x = rng.normal(5.0, [1.0, 100.0, 0.0], (100, 3))
    y = np.arange(100) % 2
    raw, _ = small(scale=False).fit(x, y).reader_.read(x)
    np.testing.assert_allclose(raw[:, :, 0], x, rtol=1e-6)


@pytest.mark.parametrize("mixer", ["attention", "fourier"])
def test_series_of_several_lengths(small, series, mixer):
    x, y = series
    ragged = [sample[: 3 + i % 3] for i, sample in enumerate(x)]
    classifier = small(mixer=mixer, max_iter=30).fit(ragged, y)
    assert classifier.model_.pooling == usual_pooling(classifier.model_.config)
    assert classifier.n_features_in_ == 2
    assert classifier.score(ragged, y) > 0.8
    # padding is nothing: alone, or in an array, a sample has the same probabilities
    together = classifier.predict_proba(ragged)
    np.testing.assert_allclose(classifier.predict_proba(ragged[:1]), together[:1], rtol=1e-4)
    longest = [sample for sample in ragged if len(sample) == 5]
    np.testing.assert_allclose(
        classifier.predict_proba(np.stack(longest)), classifier.predict_proba(longest), rtol=1e-4
    )
    as_objects = np.empty(len(ragged), object)
    as_objects[:] = ragged
    np.testing.assert_array_equal(classifier.predict_proba(as_objects), together)


def test_rows_of_several_lengths_are_padded(small, ids):
    x, y = ids
    lengths = 3 + np.arange(len(x)) % 4
    ragged = [row[:n] for row, n in zip(x, lengths, strict=True)]
    padded = np.where(np.arange(6) < lengths[:, None], x, 10)
    one = small(vocab_size=11, padding_id=10).fit(padded, y)
    other = small(vocab_size=11).fit([row.tolist() for row in ragged], y)
    np.testing.assert_allclose(one.predict_proba(padded), other.predict_proba(ragged), rtol=1e-4)
    assert one.score(padded, y) > 0.9


def test_several_processes_give_the_same_answers(small, series):
    x, y = series
    one = small().fit(x, y)
    two = small(n_jobs=2).fit(x, y)
    np.testing.assert_allclose(one.predict_proba(x), two.predict_proba(x), atol=1e-3)


def test_early_stopping_keeps_the_best_epoch_on_what_was_held_out(small, series):
    x, y = series
    y = np.where(np.arange(len(y)) % 4 == 0, 1 - y, y)  # noise, which is learned by heart
    classifier = small(early_stopping=True, n_iter_no_change=4, max_iter=60, learning_rate=0.03)
    classifier.fit(x, y)
    scores = classifier.validation_scores_
    assert len(scores) == len(classifier.loss_curve_) == classifier.n_iter_ < 60
    assert classifier.best_validation_score_ == max(scores)
    assert classifier.history_.stopped == "converged"
    assert max(scores[-4:]) <= max(scores[:-4])
    assert scores[classifier.history_.best_epoch - 1] == max(scores)


def test_without_early_stopping_the_training_loss_ends_the_training(small, series):
    x, y = series
    classifier = small(early_stopping=False, tol=10.0, n_iter_no_change=3, max_iter=60).fit(x, y)
    assert classifier.n_iter_ == 4  # the first epoch is better than none
    assert classifier.validation_scores_ is None
    assert classifier.best_validation_score_ is None
    assert classifier.best_loss_ == min(classifier.loss_curve_)
    assert classifier.history_.stopped == "converged"


def test_the_validation_score_is_weighted(small, series):
    x, y = series
    weights = np.where(y == 1, 1.0, 1e-9)
    classifier = small(early_stopping=True, max_iter=1, learning_rate=1e-9).fit(x, y, weights)
    answers = classifier.predict(x)
    _, held = parts_of(y)
    expected = np.average(answers[held] == y[held], weights=weights[held])
    assert classifier.validation_scores_[0] == pytest.approx(expected)


def test_partial_fit_trains_on_parts(small, ids):
    x, y = ids
    classifier = small(vocab_size=10)
    for epoch in range(12):
        for rows in np.array_split(np.arange(len(x)), 3):
            classifier.partial_fit(x[rows], y[rows], classes=["low", "high"] if not epoch else None)
    assert classifier.n_iter_ == len(classifier.loss_curve_) == 36
    assert classifier.score(x, y) > 0.95
    assert classifier._optimizer.steps == 36 * 2  # batches of 32, of 40 samples


def test_partial_fit_goes_on_after_fit(small, series):
    x, y = series
    fitted = small().fit(x, y)
    before = fitted.predict_proba(x)
    fitted.partial_fit(x, y)
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 13
    assert (fitted.predict_proba(x) != before).any()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "classes must be passed on the first call"),
        ({"classes": [0]}, "one class"),
        ({"classes": [0, 2]}, r"y holds the classes \[1\].*first partial_fit"),
    ],
)
def test_partial_fit_says_what_is_wrong_with_classes(small, series, arguments, match):
    with pytest.raises(ValueError, match=match):
        small().partial_fit(*series, **arguments)


def test_partial_fit_takes_one_class_at_a_time(small, series):
    x, y = series
    classifier = small().partial_fit(x[y == 0], y[y == 0], classes=[0, 1])
    assert classifier.predict_proba(x).shape == (120, 2)


def test_partial_fit_keeps_its_classes(small, series):
    x, y = series
    classifier = small().partial_fit(x[y == 0], y[y == 0], classes=[0, 1])
    with pytest.raises(ValueError, match="those of the first call"):
        classifier.partial_fit(x, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"classes \[2\]"):
        classifier.partial_fit(x, y * 2)


def test_warm_start_goes_on(small, series):
    x, y = series
    cold, warm = small(), small(warm_start=True)
    assert len({classifier.fit(x, y).loss_curve_[0] for classifier in (cold, warm)}) == 1
    assert warm.fit(x, y).loss_curve_[0] < 0.7 * cold.fit(x, y).loss_curve_[0]
    with pytest.raises(ValueError, match="classes"):
        warm.fit(x, y + 1)


def test_steps_are_bounded_whatever_the_number_of_samples():
    for n in (100, 500, 5_000, 50_000, 500_000):
        size = defaults.batch_size_for(n)
        epochs = defaults.epochs_for(n, size)
        assert size in (32, 64, 128, 256)
        assert epochs == 10 or epochs * -(-n // size) <= 1.1 * defaults.N_STEPS
    assert defaults.batch_size_for(50) == 50


def test_as_it_comes_it_learns_a_small_table():
    x, y = load_iris(return_X_y=True)
    assert EncoderClassifier(random_state=0).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.9


def test_settings_that_are_given_are_used(small, ids):
    classifier = small(
        norm="pre", positions="none", activation="relu", pooling="first", dropout=0.5
    )
    config = classifier.fit(*ids).model_.config
    assert (config.norm, config.positions, config.activation) == ("pre", "none", "relu")
    assert (config.d_model, config.n_layers, config.dropout, config.max_len) == (8, 1, 0.5, 6)
    assert classifier.model_.pooling == "first"
    assert small(dtype="float64").fit(*ids).model_.dtype == "float64"
