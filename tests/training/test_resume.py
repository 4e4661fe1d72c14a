"""fit(checkpoint=DIR): stopped at any step and continued, a training is the one not stopped."""

import errno
import os
import signal
import threading

import numpy as np
import pytest

import npformer as nf
from npformer.optim import cosine
from npformer.training.storage import checkpoint_folder as folders
from tests.sampling import mark_others
from tests.training.common import EPOCHS, STEPS, assert_same_weights, calling, fit

pytestmark = pytest.mark.usefixtures("usual_handlers")

FILE = folders.CHECKPOINT


class StopAfter(nf.Callback):
    """Send a signal to this process after a step."""

    def __init__(self, step, signum=signal.SIGINT):
        self.step, self.signum = step, signum

    def after_step(self, state):
        if state.step == self.step:
            os.kill(os.getpid(), self.signum)


def plain(history):
    """Return a history without what depends on the clock."""
    return {name: value for name, value in history.to_dict().items() if name != "seconds"}


@pytest.fixture
def begin(make, data, validation, tmp_path):
    """Train with dropout, clipping and a schedule, into a folder."""

    def train(*callbacks, folder=tmp_path / "run", **changes):
        settings = {
            "validation": validation,
            "schedule": cosine(EPOCHS * STEPS, warmup=2),
            "seed": 3,
        }
        settings |= {"clip_norm": 1.0, "label_smoothing": 0.1, "on_interrupt": "return"}
        settings["checkpoint"] = folder
        options = settings | changes
        model = options.pop("model", None) or make(dropout=0.2)
        return model, fit(model, options.pop("data", data), *callbacks, **options)

    return train


@pytest.fixture
def whole(begin):
    """A training that was not stopped."""
    return begin(checkpoint=None)


@pytest.mark.parametrize("step", range(1, EPOCHS * STEPS + 1))
@pytest.mark.parametrize(
    "signum", mark_others([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
)
def test_a_training_stopped_at_any_step_goes_on_bit_for_bit(begin, whole, step, signum):
    _, stopped = begin(StopAfter(step, signum))
    assert stopped.stopped == ("interrupted" if signum == signal.SIGINT else "terminated")
    assert len(stopped.train_loss) == step // STEPS
    model, history = begin(resume=True)
    assert_same_weights(model, whole[0])
    assert plain(history) == plain(whole[1])
    assert len(history.seconds) == EPOCHS


@pytest.fixture
def interrupted_twice(make, data):
    """Return a model that was sent two signals in step 3, and what came between them."""
    model = make()
    updates = []

    class Twice(nf.Callback):
        def before_update(self, state):
            if state.step == 3:
                os.kill(os.getpid(), signal.SIGINT)
                updates.append("still here")
                os.kill(os.getpid(), signal.SIGINT)
                updates.append("never here")

    with pytest.raises(KeyboardInterrupt):
        fit(model, data, Twice())
    return model, updates


def test_a_second_signal_does_not_wait_for_the_end_of_the_step(interrupted_twice):
    _, updates = interrupted_twice
    assert updates == ["still here"]


def test_two_signals_leave_the_weights_of_the_last_full_step(interrupted_twice, make, data):
    model, _ = interrupted_twice
    other = make()
    fit(other, data, StopAfter(2), on_interrupt="return")
    assert_same_weights(model, other)


def test_an_update_is_finished_whatever_comes(make, data, monkeypatch):
    model = make()
    step = nf.Adam.step

    def twice(self, gradients):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        step(self, gradients)

    monkeypatch.setattr(nf.Adam, "step", twice)
    assert fit(model, data, on_interrupt="return").stopped == "interrupted"
    monkeypatch.undo()
    fit(other := make(), data, StopAfter(1), on_interrupt="return")
    assert_same_weights(model, other)


@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGINT, None), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_end_the_caller_too_unless_it_asks_to_go_on(make, data, signum, status):
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.raises(KeyboardInterrupt if status is None else SystemExit) as caught:
        fit(make(), data, StopAfter(2, signum))
    if status is not None:
        assert caught.value.code == status
    assert {s: signal.getsignal(s) for s in before} == before


def test_handlers_of_the_user_stay(make, data):
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(1))
    try:
        history = fit(make(), data, StopAfter(2, signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [1]
    assert history.stopped == "finished"


def test_a_training_in_another_thread_leaves_signals_alone(make, data):
    handlers = []

    def look(state):
        handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: fit(make(), data, look))
    thread.start()
    thread.join()
    assert handlers == [signal.SIG_DFL] * EPOCHS


# Where the training goes on -----------------------------------------------------------------------
def assert_same_training(training, other):
    (model, history), (other_model, other_history) = training, other
    assert_same_weights(model, other_model)
    assert plain(history) == plain(other_history)


def test_resume_begins_without_a_checkpoint(begin, whole):
    assert_same_training(begin(resume=True), whole)


def test_resume_gives_a_finished_training_again(begin, whole):
    begin(resume=True)
    assert_same_training(begin(resume=True), whole)


def test_the_number_of_epochs_may_grow(begin, make):
    constant = {"schedule": None}
    one, _ = begin(epochs=5, checkpoint=None, **constant)
    begin(epochs=3, **constant)
    other, history = begin(epochs=5, resume=True, **constant)
    assert_same_weights(other, one)
    assert len(history.train_loss) == 5
    with pytest.raises(ValueError, match="epochs is 2 and the checkpoint is in epoch 5; expected"):
        begin(epochs=2, resume=True, **constant)


def test_a_schedule_that_changes_with_the_epochs_is_told(begin):
    begin()
    with pytest.warns(UserWarning, match="factor at step 5 is .* depends on the number of epochs"):
        begin(epochs=5, schedule=cosine(20, warmup=2), resume=True)


def test_early_stopping_goes_on_counting(begin):
    options = {"epochs": 12, "lr": 1.0, "schedule": None, "patience": 2}
    one, unstopped_history = begin(checkpoint=None, **options)
    assert unstopped_history.stopped == "patience"
    begin(StopAfter(unstopped_history.best_epoch * STEPS + 1), **options)
    other, history = begin(resume=True, **options)
    assert plain(history) == plain(unstopped_history)
    assert_same_weights(other, one)
    # Nothing is trained further, unless the patience grows.
    assert len(begin(resume=True, **options)[1].train_loss) == len(unstopped_history.train_loss)
    _, longer = begin(resume=True, **options | {"patience": 3})
    assert len(longer.train_loss) > len(unstopped_history.train_loss)


def test_a_learning_rate_that_a_callback_changed_stays(begin):
    def halve(state):
        if state.step == 2:
            state.optimizer.lr /= 2

    one, _ = begin(calling("after_step", halve), checkpoint=None)
    begin(calling("after_step", halve), StopAfter(6))
    other, _ = begin(calling("after_step", halve), resume=True)
    assert_same_weights(other, one)


def test_a_generator_of_the_user_goes_on_where_it_was(begin, whole):
    generator = np.random.default_rng(3)
    begin(StopAfter(6), seed=np.random.default_rng(3))
    model, _ = begin(resume=True, seed=generator)
    assert_same_weights(model, whole[0])
    fresh = np.random.default_rng(3)
    begin(checkpoint=None, seed=fresh)
    assert generator.bit_generator.state == fresh.bit_generator.state
    with pytest.raises(ValueError, match="with MT19937 bits; expected PCG64, with which"):
        begin(resume=True, seed=np.random.Generator(np.random.MT19937(0)))


# What does not agree ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, "batch_size is 4, and was 5"),
        ({"lr": 0.5}, "lr is 0.5, and was 0.01"),
        ({"seed": 4}, "seed is 4, and was 3"),
        ({"clip_norm": None}, "clip_norm is None, and was 1.0"),
        ({"label_smoothing": 0.0}, "loss: label_smoothing is 0.0, and was"),
        ({"validation": None}, "validation is None, and was"),
        ({"schedule": cosine(50)}, "factor at step 1 is .*, and was"),
        ({"resume": False}, r"holds the checkpoint of an earlier .* Pass resume=True"),
    ],
)
def test_another_training_or_one_anew_is_refused(begin, tmp_path, change, message):
    begin()
    before = (tmp_path / "run" / FILE).read_bytes()
    with pytest.raises(ValueError, match=message):
        begin(**{"resume": True} | change)
    assert (tmp_path / "run" / FILE).read_bytes() == before


def test_other_data_are_refused(begin, data):
    begin()
    x, y = data
    with pytest.raises(ValueError, match=r"data is '.*', and was '.*'. Expected"):
        begin(resume=True, data=(x + 1e-12, y))


def test_another_model_is_refused(begin, make):
    begin()
    with pytest.raises(ValueError, match=r"config: mixer is 'fourier', and was"):
        begin(resume=True, model=make(dropout=0.2, mixer="fourier"))


def test_what_changes_only_roundings_is_told(begin):
    begin(StopAfter(5))
    with pytest.warns(UserWarning, match="micro_batch is 2, and was None: .* up to rounding"):
        begin(resume=True, micro_batch=2)


def test_another_number_of_workers_is_told(begin):
    begin(StopAfter(5), workers=2)
    with pytest.warns(UserWarning, match="computed by 1 worker, before by 2 threads: .* rounding"):
        begin(StopAfter(9), workers=1, resume=True)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"checkpoint": 3}, TypeError, "checkpoint is 3; expected a text or"),
        ({"checkpoint": b"run"}, TypeError, "checkpoint is b'run'; expected a text or"),
        ({"checkpoint": "a.safetensors"}, ValueError, "a file's name; expected a folder"),
        ({"every": 0}, ValueError, "every is 0; expected a whole number of at least 1"),
        ({"resume": "yes"}, TypeError, "resume is 'yes'; expected True or False"),
        ({"checkpoint": None, "resume": True}, ValueError, "resume=True without a checkpoint"),
        ({"checkpoint": None, "every": 2}, ValueError, "every=2 without a checkpoint"),
    ],
)
def test_wrong_arguments_are_explained(begin, changes, error, message):
    with pytest.raises(error, match=message):
        begin(**changes)


# The folder ---------------------------------------------------------------------------------------
def test_a_folder_belongs_to_one_training_at_a_time(begin, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "WAIT", 0.1)
    with folders.reserve(tmp_path / "run"), pytest.raises(OSError, match="in use by another"):
        begin()
    begin()


def test_the_place_is_checked_before_the_training(begin, tmp_path):
    (tmp_path / "run").write_text("a file where the folder should be")
    steps = []
    note = calling("after_step", lambda state: steps.append(state.step))
    with pytest.raises(NotADirectoryError, match=f"{tmp_path}/run.*is a file; expected a folder"):
        begin(note)
    assert steps == []


def test_a_full_disk_costs_nothing_but_the_message(begin, whole, monkeypatch):
    fsync = os.fsync
    full = []

    def fail(fd):
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fail)

    def fill(state):
        if state.epoch == 2:
            full.append(state.epoch)

    with pytest.warns(UserWarning, match=r"checkpoint.safetensors could not .*\(No space left"):
        model, history = begin(fill)
    assert_same_weights(model, whole[0])
    assert plain(history) == plain(whole[1])
    full.clear()
    model, history = begin(resume=True)  # from epoch 1
    assert_same_weights(model, whole[0])
    assert plain(history) == plain(whole[1])


def test_weights_that_are_not_finite_are_never_written(begin, tmp_path):
    def spoil(state):
        if state.epoch == 2:
            state.model.parameters()["classify.bias"][0] = np.nan

    with pytest.raises(nf.NonFiniteLossError):
        begin(spoil)
    assert nf.load_checkpoint(tmp_path / "run").optimizer.steps == STEPS


def test_a_header_of_a_later_version_is_refused_by_name(begin, tmp_path):
    begin()
    stored = folders.read(tmp_path / "run")
    folders.write(tmp_path / "run", stored | {"momentum": 1})
    with pytest.raises(nf.CheckpointError, match="has momentum, which this version"):
        begin(resume=True)
    del stored["history"]
    folders.write(tmp_path / "run", stored)
    with pytest.raises(nf.CheckpointError, match="does not have 'history'"):
        begin(resume=True)


@pytest.mark.parametrize("section", sorted(folders.SECTIONS - {"notes", "model"}))
def test_damage_below_the_checksum_is_told_in_words(begin, make, tmp_path, section):
    begin(StopAfter(5))
    stored = folders.read(tmp_path / "run")
    for wrong in ({}, [], "x", 3):
        folders.write(tmp_path / "run", stored | {section: wrong})
        model = make(dropout=0.2)
        with pytest.raises((nf.CheckpointError, ValueError)):
            begin(resume=True, model=model)
        assert_same_weights(model, make(dropout=0.2))
