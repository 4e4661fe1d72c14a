"""Hooks of a training that is stopped, resumed or fails; and what callbacks keep in checkpoints."""

import os
import signal

import numpy as np
import pytest

import npformer as nf
from npformer.training.callbacks import HOOKS
from npformer.training.storage import checkpoint_folder as folders
from tests.training.common import STEPS, assert_same_weights, fit
from tests.training.test_callbacks import Noted, SpoiledFrom, at, stop, throw

pytestmark = pytest.mark.usefixtures("usual_handlers")

STEP = ["before_update", "after_step"]


def interrupt(state):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def run(make, data, tmp_path):
    """Train into a folder, and return the model and the history."""

    def train(*callbacks, **changes):
        model = make(dropout=0.2)
        options = {"checkpoint": tmp_path, "on_interrupt": "return"} | changes
        return model, fit(model, data, *callbacks, **options)

    return train


@pytest.mark.parametrize("every", [1, 2])
def test_checkpoints_are_written_after_the_hooks_of_their_moment(run, monkeypatch, every):
    """Checkpoints are written after all callbacks have seen the same moment."""
    calls = []
    write = folders.write

    def noted(folder, sections):
        calls.append(("checkpoint", sections["progress"]["epoch"]))
        write(folder, sections)

    monkeypatch.setattr(folders, "write", noted)
    run(*(Noted(lambda state, name=name: name, calls) for name in "ab"), every=every, epochs=3)
    expected = []
    for hooks, written in (
        (["on_start"], None),
        (["before_epoch", *STEP * STEPS, "after_epoch"], 1 if every == 1 else None),
        (["before_epoch", *STEP * STEPS, "after_epoch"], 2),
        (["before_epoch", *STEP * STEPS, "after_epoch"], 3 if every == 1 else None),
        (["after_training"], None if every == 1 else 3),
        (["on_end"], None),
    ):
        expected += [(hook, name) for hook in hooks for name in "ab"]
        expected += [] if written is None else [("checkpoint", written)]
    assert calls == expected
    assert {hook for hook, _ in calls} == {*HOOKS, "checkpoint"}


def test_an_epoch_begins_once_however_often_it_is_resumed(run):
    look = Noted(lambda state: (state.epoch, state.step_in_epoch, state.rows, state.step))
    run(look, at("after_step", STEPS + 1, interrupt))
    assert look.seen("before_epoch") == [(1, 0, None, 0), (2, 0, None, STEPS)]
    within = Noted(lambda state: (state.epoch, state.step_in_epoch))
    run(within, at("after_step", 2, interrupt), resume=True)
    assert within.names() == ["on_start", *STEP * 2, "after_training", "on_end"]
    last = Noted(lambda state: (state.epoch, state.step_in_epoch))
    run(last, resume=True)
    assert last.names()[:4] == ["on_start", *STEP, "after_epoch"]
    assert last.seen("before_epoch") == [(3, 0)]


def test_an_epoch_stopped_at_its_last_step_is_only_evaluated(run):
    """By a signal, after which the epoch still lacks its evaluation."""
    run(at("after_step", STEPS, interrupt))
    noted = Noted(lambda state: state.epoch)
    run(noted, epochs=2, resume=True)
    assert noted.names()[:3] == ["on_start", "after_epoch", "before_epoch"]
    assert noted.seen("before_epoch") == [2]


@pytest.mark.parametrize("hook", ["before_epoch", "before_update", "after_step", "after_epoch"])
def test_no_hook_follows_an_error_but_the_end(make, data, hook):
    noted = Noted()
    with pytest.raises(ZeroDivisionError):
        fit(make(), data, noted, at(hook, 2, throw(ZeroDivisionError())))
    assert noted.names()[-2:] == [hook, "on_end"]
    assert "after_training" not in noted.names()


ENDS = pytest.mark.parametrize(
    ("ended_by", "stopped"),
    [(stop, "callback"), (interrupt, "interrupted"), (None, "finished")],
    ids=["stop", "signal", "finished"],
)


def fit_noting_weights(model, data, ended_by):
    """Train; from epoch 2 on the classes are confused, so the weights of epoch 1 are the best."""
    noted = Noted(lambda state: state.model.parameters().flat.copy())
    callbacks = [SpoiledFrom(2), noted]
    if ended_by is not None:
        callbacks.append(at("after_step", 2 * STEPS + 1, ended_by))
    history = fit(model, data, *callbacks, validation=data, on_interrupt="return")
    return noted, history


@ENDS
def test_after_training_sees_the_last_weights(make, data, ended_by, stopped):
    noted, history = fit_noting_weights(make(), data, ended_by)
    assert history.stopped == stopped
    (last,) = noted.seen("after_training")
    np.testing.assert_array_equal(last, noted.seen("after_step")[-1])
    assert (last != noted.seen("on_end")[0]).any()


@ENDS
def test_on_end_sees_the_best_weights(make, data, ended_by, stopped):
    model = make()
    noted, history = fit_noting_weights(model, data, ended_by)
    assert (history.stopped, history.best_epoch) == (stopped, 1)
    (best,) = noted.seen("on_end")
    np.testing.assert_array_equal(best, noted.seen("after_epoch")[0])
    np.testing.assert_array_equal(best, model.parameters().flat)


def test_a_stop_before_an_epoch_takes_no_step_of_it(run):
    """The epoch has begun, so it is the one that a resumed training goes on with."""
    noted = Noted()
    _, history = run(noted, at("before_epoch", 2, stop))
    assert noted.names()[-3:] == ["before_epoch", "after_training", "on_end"]
    assert (history.stopped, len(history.train_loss)) == ("callback", 1)
    again = Noted(lambda state: state.epoch)
    model, _ = run(again, resume=True)
    unstopped_model, _ = run(checkpoint=None)
    assert_same_weights(model, unstopped_model)
    assert again.seen("before_epoch") == [3]


# What callbacks keep in checkpoints ---------------------------------------------------------------
class Keeps(nf.Callback):
    """Keeps a state, and notes the one that it is given."""

    def __init__(self, state):
        self.state, self.given = state, None

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.given = state


def test_an_array_that_a_callback_gathers_goes_on(run):
    """Such as a mean of the weights: resumed, it is that of a training that was not stopped."""

    class Mean(Keeps):
        def after_step(self, state):
            now = state.model.parameters().flat
            self.state = 0.9 * self.state + 0.1 * now if state.step > 1 else now.copy()

        def load_state_dict(self, state):
            self.state = state

    unstopped, stopped, resumed = Mean(None), Mean(None), Mean(None)
    run(unstopped, checkpoint=None)
    run(stopped, at("after_step", STEPS + 2, interrupt))
    run(resumed, resume=True)
    assert (stopped.state != unstopped.state).any()
    np.testing.assert_array_equal(resumed.state, unstopped.state)


def test_a_callback_whose_state_is_in_the_checkpoint_has_to_be_there_again(run):
    run(Keeps(3), epochs=1)
    with pytest.raises(ValueError, match="callbacks lacks a Keeps, whose state"):
        run(epochs=1, resume=True)
