"""Figures on training samples are those of `npformer.evaluate`, and take little of the time."""

import numpy as np
import pytest

import npformer as nf
from npformer.learn.play import training_figures
from npformer.learn.play.task_works import take_evenly
from npformer.learn.play.tasks import defaults, work_of
from npformer.learn.play.training_figures import TrainingFigures
from npformer.tasks.sources.file_task import Part
from npformer.training.callbacks import Callback
from tests.learn.play.questions.conftest import SMALL


class Figures(Callback):
    """Keeps what is measured after each epoch, and what `npformer.evaluate` says at that moment."""

    def __init__(self, work):
        self.work, self.figures = work, TrainingFigures(work)
        self.measured, self.expected = [], []

    def after_epoch(self, state):
        self.measured.append(self.figures.measure(state))
        self.expected.append(nf.evaluate(state.model, self.work.training_samples(250)))


def trained(task, **changes):
    """Return the figures of a short training."""
    work = work_of(defaults(task, **SMALL | changes))
    figures = Figures(work)
    work.train(callbacks=[figures], progress=False, workers=1)
    return figures


@pytest.mark.parametrize(
    ("task", "samples"),
    [("digits", 50), ("sentences", 60), ("parity", 40), ("text", 4000), ("reverse", 60)],
)
def test_they_are_those_of_evaluate(task, samples):
    figures = trained(task, samples=samples)
    (measured,), (expected,) = figures.measured, figures.expected
    assert measured["train_loss"] == pytest.approx(expected.loss)
    assert measured["train_accuracy"] == pytest.approx(expected.accuracy)


def test_they_are_of_the_samples_that_the_model_learns_from(monkeypatch):
    seen = []
    real = training_figures.evaluate

    def spy(model, samples):
        seen.append(samples)
        return real(model, samples)

    monkeypatch.setattr(training_figures, "evaluate", spy)
    trained("digits", samples=20)
    ((x, y),) = seen
    every = nf.data.digits().train
    rows = np.linspace(0, len(every[0]) - 1, 20).round().astype(int)
    np.testing.assert_array_equal(x, every[0][rows])
    np.testing.assert_array_equal(y, every[1][rows])


def test_beyond_its_share_of_time_only_the_ends_are_measured(monkeypatch):
    monkeypatch.setattr(training_figures, "FREE", 0.0)
    monkeypatch.setattr(training_figures, "SHARE", 0.0)
    measured = trained("digits", samples=20, epochs=4).measured
    assert [bool(figures) for figures in measured] == [True, False, False, True]


def test_a_short_run_is_measured_after_each_epoch(monkeypatch):
    monkeypatch.setattr(training_figures, "FREE", 1e9)
    assert all(trained("digits", samples=20, epochs=3).measured)


def test_outputs_that_are_not_finite_do_not_end_a_training(monkeypatch):
    def refuse(model, samples):
        raise ValueError("the outputs for sample 0 are NaN")

    monkeypatch.setattr(training_figures, "evaluate", refuse)
    assert trained("digits", samples=20).measured == [{}]


# Few samples --------------------------------------------------------------------------------------
def test_few_samples_of_a_sorted_table_have_all_labels():
    labels = ["bad"] * 50 + ["good"] * 50
    few = take_evenly(Part([f"text {k}" for k in range(100)], labels), 10)
    assert few.labels.count("bad") == few.labels.count("good") == 5


def test_few_samples_of_a_text_are_its_beginning():
    assert take_evenly(Part("To be, or not to be"), 5).samples == "To be"


@pytest.mark.parametrize("n", [None, 3, 100])
def test_all_samples_are_taken_if_there_are_no_more(n):
    part = Part(["a", "b", "c"], [0, 1, 0])
    assert take_evenly(part, n) is part


def test_a_run_with_few_samples_has_shorter_epochs():
    work = work_of(defaults("digits", **SMALL | {"samples": 20, "batch_size": 10}))
    assert sum(work.train(progress=False, workers=1).workers.values()) == 2


def test_few_samples_are_not_those_to_validate_on():
    work = work_of(defaults("digits", **SMALL | {"samples": 20}))
    assert len(work) == len(nf.data.digits().validation[0])
