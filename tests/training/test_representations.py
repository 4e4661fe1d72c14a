"""What people see of a history, an evaluation, a data set and a model, in a shell or a notebook."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from tests.needs import NEEDS

CONFIG = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
HISTORY = nf.History(
    train_loss=[1.0, 0.5],
    validation_loss=[0.9, 0.6],
    validation_accuracy=[0.5, 0.75],
    lr=[0.1, 0.001],
    seconds=[0.25, 2.0],
    best_epoch=2,
    metric="accuracy",
    validation_metric=[0.5, 0.75],
)


@pytest.fixture
def digits():
    return nf.data.digits()


@pytest.fixture
def model():
    return nf.SequenceClassifier(CONFIG, 10, n_features=8)


def test_a_history_is_a_table_of_its_epochs():
    title, _, head, _, first, last, _, ending = repr(HISTORY).splitlines()
    assert title == "2 epochs"
    assert head == "epoch  train loss  validation loss  validation accuracy     lr  seconds"
    assert first.split() == ["1", "1.0000", "0.9000", "0.5000", "0.1", "0.25"]
    assert last.split() == ["2", "0.5000", "0.6000", "0.7500", "0.001", "2"]
    assert ending == "finished; weights of epoch 2"


def test_the_rows_of_a_history_have_its_numbers():
    assert HISTORY.table()[1] == {
        "epoch": 2,
        "train_loss": 0.5,
        "validation_loss": 0.6,
        "validation_accuracy": 0.75,
        "validation_metric": 0.75,
        "lr": 0.001,
        "seconds": 2.0,
    }


def test_a_metric_of_its_own_has_a_column():
    history = replace(HISTORY, metric="macro_f1", validation_metric=[0.1, 0.2])
    assert "validation metric" in repr(history)


def test_an_epoch_without_an_end_has_empty_cells():
    assert nf.History(train_loss=[1.0, 0.5], lr=[0.1]).table()[1]["lr"] is None


def test_a_long_history_shows_its_best_epoch():
    history = nf.History(train_loss=[0.5] * 100, best_epoch=50)
    shown = [line.split()[0] for line in repr(history).splitlines()[4:-2]]
    numbers = [*range(1, 11), 50, *range(91, 101)]
    assert shown == [str(number) for number in numbers]
    assert repr(history).startswith("100 epochs, 79 of them not shown")


def test_a_history_becomes_a_table_of_pandas():
    pandas = pytest.importorskip("pandas", reason=NEEDS["pandas"])
    table = HISTORY.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert table.loc[2, "train_loss"] == 0.5


def test_without_pandas_the_error_names_the_other_table(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas\. History\.table\(\) needs nothing$"):
        HISTORY.to_pandas()


def test_an_evaluation_counts_the_confusions(model, digits):
    x, y = digits.test
    evaluation = nf.evaluate(model, (x, y))
    expected = np.zeros((10, 10))
    np.add.at(expected, (y, model.predict(x)), 1)
    np.testing.assert_array_equal(evaluation.confusion, expected)


def test_confusions_of_weighted_samples_are_sums_of_weights(model, digits):
    x, y = digits.test
    weights = np.where(y == 3, 0.5, 2.0)
    evaluation = nf.evaluate(model, (x, y), sample_weight=weights)
    np.testing.assert_allclose(
        evaluation.confusion.sum(axis=1), np.bincount(y, weights, minlength=10), rtol=1e-12
    )


def test_the_table_of_classes_agrees_with_the_mean(model, digits):
    evaluation = nf.evaluate(model, digits.test)
    f1 = [float(row[-1]) for row in evaluation.by_class()[1:]]
    assert np.mean(f1) == pytest.approx(evaluation.macro_f1, abs=1e-4)


def test_an_evaluation_prints_its_tables(model, digits):
    lines = repr(nf.evaluate(model, digits.test)).splitlines()
    assert lines[0].startswith("loss ")
    assert lines[2].split() == ["class", "labels", "precision", "recall", "F1"]
    assert lines[14].startswith("label / predicted")


def test_an_evaluation_without_classes_is_one_line(rng):
    regressor = nf.SequenceClassifier(CONFIG, 1, n_features=2, output="mean_squared_error")
    data = rng.standard_normal((4, 8, 2), dtype="float32"), np.ones((4, 1), "float32")
    evaluation = nf.evaluate(regressor, data)
    assert repr(evaluation).count("\n") == 0
    with pytest.raises(ValueError, match=r"^there is no confusion matrix; expected a loss of cl"):
        evaluation.by_class()


def test_a_data_set_shows_its_shapes(digits):
    assert "float32 (1252, 8, 8)" in repr(digits)
    assert repr(digits).endswith("a model for it: n_classes=10, n_features=8")


def test_a_model_shows_its_layers(model):
    title = f"SequenceClassifier: {model.n_parameters():,} trained parameters, float32, numpy"
    assert repr(model).startswith(title)
    assert "encoder   Encoder" in repr(model)


@pytest.mark.parametrize("what", ["history", "evaluation", "data set", "model"])
def test_a_notebook_shows_a_table(what, model, digits):
    shown = {
        "history": HISTORY,
        "evaluation": nf.evaluate(model, digits.test),
        "data set": digits,
        "model": model,
    }[what]
    assert shown._repr_html_().startswith("<table><caption>")
