"""By which metric, and on which share of the data, fit chooses the best epoch."""

import importlib
import json

import numpy as np
import pytest

import npformer as nf
from npformer.models.trainable.metrics import FIGURES, balanced_accuracy, macro_f1
from tests.needs import NEEDS
from tests.training.common import STEPS, assert_same_weights, assert_trained, calling, fit


def by_class(y, predicted, n_classes):
    counts = [np.bincount(of, minlength=n_classes) for of in (y[y == predicted], y, predicted)]
    return np.stack(counts).astype(float)


def test_a_prediction_of_a_class_without_labels_counts_in_f1_alone():
    counts = by_class(np.array([0, 0]), np.array([0, 1]), 3)
    assert macro_f1(counts) == pytest.approx((2 / 3 + 0) / 2)
    assert balanced_accuracy(counts) == 0.5


def test_metrics_are_those_of_scikit_learn(rng):
    metrics = pytest.importorskip("sklearn.metrics", reason=NEEDS["sklearn"])
    for n_classes in (2, 3, 9):
        y, predicted = rng.integers(0, n_classes, (2, 30))
        counts = by_class(y, predicted, n_classes)
        assert macro_f1(counts) == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
        y[y == 1] = 0
        counts = by_class(y, predicted, n_classes)
        assert balanced_accuracy(counts) == pytest.approx(
            np.mean(metrics.recall_score(y, predicted, average=None, labels=np.unique(y)))
        )


@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_an_evaluation_has_them_all(small_model, rng, pooling):
    model = small_model(pooling=pooling)
    ids = rng.integers(0, 7, (12, 6))
    y = rng.integers(-1 if pooling == "none" else 0, 3, (12, 6) if pooling == "none" else 12)
    predicted = model.predict(ids)
    counted = y >= 0
    counts = by_class(y[counted], predicted[counted], 3)
    evaluation = nf.evaluate(model, (ids, y))
    assert evaluation.macro_f1 == pytest.approx(macro_f1(counts))
    assert evaluation.balanced_accuracy == pytest.approx(balanced_accuracy(counts))
    assert evaluation.metric is None
    assert nf.Evaluation(0.5, 0.9, 3).labels == 3


# Which epoch is the best --------------------------------------------------------------------------
WATCHERS = importlib.import_module("npformer.training.watchers")

EPOCHS = [  # loss, accuracy, labels, macro F1, balanced accuracy, own
    (0.9, 0.6, 1, 0.2, 0.1, 3.0),
    (0.7, 0.9, 1, 0.3, 0.2, 1.0),
    (0.8, 0.8, 1, 0.9, 0.3, 2.0),
    (0.6, 0.7, 1, 0.4, 0.9, 2.5),
    (0.2, 0.5, 1, 0.4, 0.4, 3.0),
]


@pytest.mark.parametrize(
    ("metric", "best", "values"),
    [
        ("accuracy", 2, [0.6, 0.9, 0.8, 0.7, 0.5]),
        ("macro_f1", 3, [0.2, 0.3, 0.9, 0.4, 0.4]),
        ("balanced_accuracy", 4, [0.1, 0.2, 0.3, 0.9, 0.4]),
        ("loss", 5, [0.9, 0.7, 0.8, 0.6, 0.2]),
        (lambda y, p: 0.0, 5, [3.0, 1.0, 2.0, 2.5, 3.0]),  # 3.0 twice: the lower loss
    ],
)
def test_the_metric_chooses(make, data, monkeypatch, metric, best, values):
    figures = iter(EPOCHS)
    model = make()
    with monkeypatch.context() as only_here:
        only_here.setattr(WATCHERS, "measure", lambda *_, **__: nf.Evaluation(*next(figures)))
        history = fit(model, data, validation=data, epochs=5, metric=metric)
    assert history.best_epoch == best
    assert history.validation_metric == values
    assert_trained(model, make(), data, epochs=best)


@pytest.mark.parametrize(
    ("metric", "epochs"), [("accuracy", 3), ("loss", 3), ("macro_f1", 4), ("balanced_accuracy", 5)]
)
def test_patience_asks_the_metric(make, data, monkeypatch, metric, epochs):
    figures = iter(EPOCHS)
    monkeypatch.setattr(WATCHERS, "measure", lambda *_, **__: nf.Evaluation(*next(figures)))
    history = fit(make(), data, validation=data, epochs=5, metric=metric, patience=1)
    assert len(history.train_loss) == epochs


@pytest.mark.parametrize("metric", [*FIGURES, "loss"])
def test_the_history_says_what_an_evaluation_says(make, data, validation, metric):
    model = make()
    history = fit(model, data, validation=validation, metric=metric)
    evaluation = nf.evaluate(model, validation)
    at = history.best_epoch - 1
    assert history.metric == metric
    assert history.validation_metric[at] == getattr(evaluation, metric)
    assert json.loads(json.dumps(history.to_dict())) == history.to_dict()


def test_a_function_as_metric_gets_labels_and_probabilities(small_model, rng):
    ids = rng.integers(0, 7, (12, 6))
    calls = []
    y = rng.integers(-1, 3, (12, 6))

    def brier(labels, probabilities):
        calls.append((labels, probabilities))
        return -((probabilities - np.eye(3)[labels]) ** 2).mean()

    model = small_model(pooling="none")
    history = fit(model, (ids, y), validation=(ids, y), epochs=1, lr=1e-300, metric=brier)
    labels, probabilities = calls[0]
    np.testing.assert_array_equal(labels, y[y >= 0])
    np.testing.assert_allclose(probabilities, model.predict_probabilities(ids)[y >= 0])
    assert history.metric == "brier"
    assert history.validation_metric == [brier(labels, probabilities)]


@pytest.fixture
def regression(make, rng):
    """Return a model of numbers, and data for it."""
    data = rng.normal(size=(20, 4, 2)), rng.normal(size=(20, 3))
    return make(output="mean_squared_error"), data


def test_a_loss_without_classes_has_no_accuracy(regression):
    model, data = regression
    history = fit(model, data, validation=data, metric="accuracy")
    assert history.validation_metric == history.validation_accuracy == []


def test_a_loss_without_classes_may_be_the_metric(regression):
    model, data = regression
    assert fit(model, data, validation=data, metric="loss").validation_metric != []


def test_a_loss_without_classes_takes_a_function_as_metric(regression):
    model, data = regression

    def r_squared(y, outputs):
        return 1.0 - ((outputs - y) ** 2).sum() / ((y - y.mean(axis=0)) ** 2).sum()

    history = fit(model, data, validation=data, metric=r_squared, epochs=1)
    assert history.validation_metric == [pytest.approx(r_squared(data[1], model(data[0])))]


def test_a_loss_without_classes_refuses_metrics_of_classes(regression):
    model, data = regression
    with pytest.raises(ValueError, match="'macro_f1' and a MeanSquaredError has no classes"):
        fit(model, data, metric="macro_f1")


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        ("f1", ValueError, "metric is 'f1'; expected one of 'accuracy', 'macro_f1'"),
        (3, TypeError, "metric is 3; expected one of accuracy"),
        (lambda y: 0.0, TypeError, r"metric cannot be called with y and probabilities"),
        (lambda y, p: np.nan, ValueError, "metric <lambda> returned nan; expected a number"),
        (lambda y, p: "good", ValueError, "metric <lambda> returned 'good'; expected a number"),
        (lambda y, p: p, ValueError, "metric <lambda> returned "),
    ],
)
def test_wrong_metrics_are_refused_in_words(make, data, metric, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, validation=data, metric=metric)


def test_weights_of_samples_held_out_weigh_in_the_metric(make, data):
    x, y = data
    weights = np.arange(1.0, 21.0)
    model = make()
    history = fit(
        model,
        (x, y),
        validation=0.5,
        sample_weight=weights,
        epochs=1,
        metric="balanced_accuracy",
    )
    rows = history.validation_rows
    evaluation = nf.evaluate(model, (x[rows], y[rows]), sample_weight=weights[rows])
    assert history.validation_metric == [pytest.approx(evaluation.balanced_accuracy)]
    assert history.validation_loss == [pytest.approx(evaluation.loss)]
    assert len(history.lr) == 1 < STEPS


@pytest.fixture
def held_out(make, data):
    """Return a model that was trained while a quarter was held out, its history, and its rows."""
    rows = set()
    note_rows = calling("after_step", lambda state: rows.update(state.rows.tolist()))
    model = make(dropout=0.2)
    history = fit(model, data, note_rows, validation=0.25, seed=4)
    return model, history, rows


def test_a_share_of_each_class_is_held_out(held_out, data):
    _, history, _ = held_out
    assert len(history.validation_rows) == 5
    assert np.bincount(data[1][history.validation_rows]).tolist() in ([2, 3], [3, 2])


def test_fit_validates_on_the_rows_held_out(held_out, data):
    model, history, _ = held_out
    x, y = data
    evaluation = nf.evaluate(model, (x[history.validation_rows], y[history.validation_rows]))
    assert history.validation_loss[history.best_epoch - 1] == pytest.approx(evaluation.loss)


def test_fit_trains_on_the_rows_not_held_out(held_out, make, data):
    model, history, rows = held_out
    x, y = data
    held = history.validation_rows
    assert rows == set(range(20)) - set(held)
    rest = sorted(rows)
    other = make(dropout=0.2)
    fit(other, (x[rest], y[rest]), validation=(x[held], y[held]), seed=4)
    assert_same_weights(model, other)


def test_without_a_share_the_history_says_none(make, data):
    assert fit(make(), data, validation=data).validation_rows is None


@pytest.mark.parametrize(
    ("share", "error", "message"),
    [
        (0.0, ValueError, "validation is 0.0; expected a fraction of the data between 0 and 1"),
        (1, ValueError, "validation is 1; expected a fraction"),
        (1.5, ValueError, "validation is 1.5; expected a fraction"),
        (float("nan"), ValueError, "validation is nan; expected a fraction"),
        (True, TypeError, r"validation is a bool; expected \(x, y\)"),
        ("0.1", TypeError, r"validation is a str; expected \(x, y\)"),
        (0.01, ValueError, "20 samples are too few to set 0.01 of them aside; expected at least 1"),
    ],
)
def test_wrong_shares_are_refused_in_words(make, data, share, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, validation=share)
