"""History: its curve, and files of it."""

import json
import sys
from dataclasses import replace

import pytest

import npformer as nf
from npformer.training.inspection.curves import figure_of
from tests.needs import NEEDS
from tests.training.common import fit

VALUES = {"train_loss": [1.0, 0.5], "lr": [0.1, 0.1], "seconds": [0.2, 0.2], "best_epoch": 2}
VALUES |= {"validation_loss": [0.9, 0.6], "validation_accuracy": [0.5, 0.75]}
VALUES |= {"metric": "macro_f1", "validation_metric": [0.4, 0.7], "validation_rows": [3, 5]}
VALIDATED = nf.History(**VALUES, workers={"1 worker": 8})


def test_a_history_comes_back_from_json():
    assert nf.History.from_dict(json.loads(json.dumps(VALIDATED.to_dict()))) == VALIDATED


@pytest.mark.parametrize(
    "values",
    [
        *(
            {k: v for k, v in VALIDATED.to_dict().items() if k != name}
            for name in VALIDATED.to_dict()
        ),
        VALIDATED.to_dict() | {"speed": [1.0]},
        None,
        [1.0],
    ],
)
def test_a_history_with_other_values_than_its_own_is_refused(values):
    with pytest.raises(ValueError, match="expected a dict of train_loss, "):
        nf.History.from_dict(values)


@pytest.fixture
def needs_matplotlib():
    pytest.importorskip("matplotlib", reason=NEEDS["matplotlib"])


@pytest.fixture
def trained_history(needs_matplotlib, make, data, validation):
    return fit(make(), data, validation=validation, metric="macro_f1")


def test_a_plot_is_written_as_png(trained_history, tmp_path):
    trained_history.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_shows_the_losses(trained_history, tmp_path):
    losses, _ = trained_history.plot(tmp_path / "curve.png").axes
    curves = [line.get_ydata().tolist() for line in losses.lines if line.get_marker() != "*"]
    assert curves == [trained_history.train_loss, trained_history.validation_loss]


def test_a_plot_shows_the_metric_with_its_best_epoch(trained_history, tmp_path):
    _, metrics = trained_history.plot(tmp_path / "curve.png").axes
    assert metrics.lines[0].get_ydata().tolist() == trained_history.validation_metric
    best = trained_history.best_epoch
    assert metrics.lines[1].get_xdata().tolist() == [best]
    assert metrics.lines[1].get_ydata().tolist() == [trained_history.validation_metric[best - 1]]
    assert metrics.get_ylabel() == "macro f1"


@pytest.mark.usefixtures("needs_matplotlib")
@pytest.mark.parametrize(
    ("history", "right"),
    [
        (VALIDATED, "macro f1"),
        (nf.History(train_loss=[1.0], lr=[0.1]), "learning rate"),
        (nf.History(), "learning rate"),
    ],
)
def test_any_history_has_a_curve(tmp_path, history, right):
    figure = history.plot(str(tmp_path / "curve.svg"))
    assert b"<svg" in (tmp_path / "curve.svg").read_bytes()
    assert figure.axes[1].get_ylabel() == right
    assert history.plot() is not None
    tested = figure_of({"": replace(history, best_epoch=1)}, {"": 0.9}).axes[1].lines
    marks = [line.get_ydata().tolist() for line in tested if line.get_marker() == "*"]
    assert marks == [[0.9]] * (right == "macro f1")  # an accuracy is no learning rate


def test_a_place_that_is_not_there_is_told_before_drawing(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        nf.History().plot(tmp_path / "nowhere" / "curve.png")
    with pytest.raises(TypeError, match="path is 3; expected a text"):
        nf.History().plot(3)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"python -m pip install \"npformer\[plot\]\""):
        nf.History(train_loss=[1.0]).plot()
