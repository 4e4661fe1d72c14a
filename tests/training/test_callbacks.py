"""Callbacks of fit: when they are called, what they see, and what they may do."""

import math
from functools import partialmethod
from itertools import count

import numpy as np
import pytest

import npformer as nf
from npformer.training.callbacks import HOOKS
from tests.training.common import EPOCHS, STEPS, assert_same_weights, assert_trained, calling, fit


class Noted(nf.Callback):
    """Notes each call, and what `look` finds in the state."""

    def __init__(self, look=lambda state: None, calls=None):
        self.look = look
        self.calls = [] if calls is None else calls

    def _call(self, hook, state):
        self.calls.append((hook, self.look(state)))

    def seen(self, hook):
        return [value for name, value in self.calls if name == hook]

    def names(self):
        return [name for name, _ in self.calls]


for hook in HOOKS:
    setattr(Noted, hook, partialmethod(Noted._call, hook))


def at(hook, number, action):
    """Return a callback that does something at one call of one hook."""
    calls = count(1)
    return calling(hook, lambda state: action(state) if next(calls) == number else None)


class SpoiledFrom(nf.Callback):
    """From some epoch on, the classes are confused at the end of each."""

    def __init__(self, epoch):
        self.epoch = epoch

    def after_step(self, state):
        if state.epoch >= self.epoch and state.step_in_epoch == state.n_steps:
            for name in ("classify.weight", "classify.bias"):
                state.model.parameters()[name][...] *= -1.0


stop = nf.TrainingState.stop


def throw(error):
    def action(state):
        raise error

    return action


# When, and what is seen ---------------------------------------------------------------------------
def test_a_callback_sees_counts_that_begin_with_1(make, data):
    noted = Noted(lambda s: (s.epoch, s.step, s.step_in_epoch, s.n_steps, s.epochs))
    fit(make(), data, noted)
    assert noted.seen("on_start") == [(0, 0, 0, STEPS, EPOCHS)]
    steps = [
        (epoch, (epoch - 1) * STEPS + step, step, STEPS, EPOCHS)
        for epoch in range(1, EPOCHS + 1)
        for step in range(1, STEPS + 1)
    ]
    assert noted.seen("before_update") == noted.seen("after_step") == steps
    assert noted.seen("after_epoch") == steps[STEPS - 1 :: STEPS]
    assert noted.seen("on_end") == steps[-1:]


def test_steps_go_on_from_those_of_the_optimizer(make, data):
    model = make()
    optimizer = nf.Adam(model.parameters())
    fit(model, data, optimizer=optimizer, epochs=1)
    noted = Noted(lambda s: (s.step, s.optimizer.steps, s.step_in_epoch))
    fit(model, data, noted, optimizer=optimizer, epochs=1)
    assert noted.seen("before_update") == [(5, 4, 1), (6, 5, 2), (7, 6, 3), (8, 7, 4)]
    assert noted.seen("after_step") == [(5, 5, 1), (6, 6, 2), (7, 7, 3), (8, 8, 4)]


def test_a_callback_sees_the_loss_of_its_step(make, data):
    model = make()
    noted = Noted(lambda state: state.loss)
    first, _ = model.loss_and_gradients(*data)
    history = fit(model, data, noted, batch_size=20)
    assert math.isnan(noted.seen("on_start")[0])
    assert noted.seen("before_update") == noted.seen("after_step") == history.train_loss
    assert noted.seen("after_step")[0] == pytest.approx(first, rel=1e-12)


def test_the_loss_of_an_epoch_is_the_mean_of_its_steps(make, data):
    noted = Noted(lambda state: state.loss)
    history = fit(make(), data, noted)
    losses = np.reshape(noted.seen("after_step"), (EPOCHS, STEPS))
    assert history.train_loss == pytest.approx(losses.mean(axis=1), rel=1e-12)
    assert type(noted.seen("after_step")[0]) is float


def test_the_rows_are_those_of_the_batch(make, data):
    x, y = data
    model = make()
    batches = []

    def look(state):
        loss, _ = model.loss_and_gradients(x[state.rows], y[state.rows])
        batches.append((state.rows.tolist(), float(loss), state.loss))

    fit(model, data, at("before_update", 2, look), epochs=1)
    ((rows, loss, of_the_step),) = batches
    assert len(set(rows)) == 5
    assert of_the_step == pytest.approx(loss, rel=1e-12)


def gradient_norm(state):
    """Return the norm of the gradients that a callback sees, None without gradients."""
    return None if state.gradients is None else float(nf.optim.global_norm(state.gradients))


def test_clipping_lies_between_before_update_and_after_step(make, data):
    noted = Noted(gradient_norm)
    fit(make(), data, noted, clip_norm=0.01)
    assert min(noted.seen("before_update")) > 0.01 >= max(noted.seen("after_step"))


def test_gradients_are_not_seen_outside_a_step(make, data):
    noted = Noted(gradient_norm)
    fit(make(), data, noted)
    for hook in ("on_start", "after_epoch", "on_end"):
        assert set(noted.seen(hook)) == {None}


def test_gradients_are_not_seen_after_an_error(make, data):
    noted = Noted(gradient_norm)
    with pytest.raises(ZeroDivisionError):
        fit(make(), data, noted, at("after_step", 2, throw(ZeroDivisionError())))
    assert noted.seen("on_end") == [None]


def test_before_update_the_weights_are_the_old_ones(make, data):
    noted = Noted(lambda state: state.model.parameters().flat.copy())
    fit(make(), data, noted)
    before, after = noted.seen("before_update"), noted.seen("after_step")
    np.testing.assert_array_equal(before[0], noted.seen("on_start")[0])
    for k in range(len(before)):
        assert (before[k] != after[k]).any()
        if k:
            np.testing.assert_array_equal(before[k], after[k - 1])


def look_at_evaluations(state):
    """Return figures of the last evaluation, those of all, the epochs, and the best epoch."""
    evaluation, history = state.evaluation, state.history
    last = None if evaluation is None else (evaluation.loss, evaluation.accuracy)
    figures = list(zip(history.validation_loss, history.validation_accuracy, strict=True))
    return last, figures, len(history.train_loss), state.best_epoch


def test_a_callback_sees_the_evaluations_so_far(make, data):
    noted = Noted(look_at_evaluations)
    history = fit(make(), data, noted, validation=data)
    figures = list(zip(history.validation_loss, history.validation_accuracy, strict=True))
    best = [1 + max(range(k), key=lambda i: (figures[i][1], -figures[i][0])) for k in range(1, 4)]
    assert noted.seen("on_start") == [(None, [], 0, None)]
    expected = [(figures[k], figures[: k + 1], k + 1, best[k]) for k in range(EPOCHS)]
    assert noted.seen("after_epoch") == expected
    assert noted.seen("before_update")[STEPS] == (figures[0], figures[:1], 1, best[0])


def test_a_callback_sees_no_evaluation_without_validation_data(make, data):
    noted = Noted(look_at_evaluations)
    fit(make(), data, noted)
    assert noted.seen("after_epoch") == [(None, [], k + 1, None) for k in range(EPOCHS)]


def test_callbacks_that_only_look_change_nothing(make, data):
    model, twin = make(dropout=0.3), make(dropout=0.3)
    history = fit(model, data, Noted(lambda state: state.loss), validation=data, clip_norm=1.0)
    again = fit(twin, data, validation=data, clip_norm=1.0)
    assert_same_weights(model, twin)
    assert history.train_loss == again.train_loss


@pytest.mark.parametrize("name", ["epoch", "optimizer", "evaluation", "anything"])
def test_nothing_can_be_assigned_to_the_state(make, data, name):
    with pytest.raises(AttributeError, match=name):
        fit(make(), data, lambda state: setattr(state, name, None))


# Stopping -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("hook", ["before_update", "after_step"])
def test_stop_in_a_step_ends_with_that_step(make, data, hook):
    model = make()
    noted = Noted()
    optimizer = nf.Adam(model.parameters(), lr=1e-2)
    history = fit(model, data, noted, at(hook, 6, stop), optimizer=optimizer)
    assert optimizer.steps == 6
    assert noted.names()[-3:] == ["after_step", "after_training", "on_end"]
    assert (history.stopped, history.best_epoch, len(history.train_loss)) == ("callback", None, 1)


def test_stop_in_the_first_epoch_leaves_the_weights_as_they_are(make, data):
    model = make()
    noted = Noted(lambda state: state.model.parameters().flat.copy())
    history = fit(model, data, noted, at("after_step", 2, stop), validation=data)
    np.testing.assert_array_equal(model.parameters().flat, noted.seen("after_step")[-1])
    assert (history.best_epoch, history.train_loss, history.seconds) == (None, [], [])


@pytest.mark.parametrize("hook", ["before_update", "after_step"])
def test_stop_in_the_last_step_of_an_epoch_brings_it_to_its_end(make, data, hook):
    model = make()
    noted = Noted()
    history = fit(model, data, noted, at(hook, 2 * STEPS, stop), validation=data)
    assert noted.names()[-3:] == ["after_epoch", "after_training", "on_end"]
    assert len(history.train_loss) == len(history.validation_loss) == 2
    assert_trained(model, make(), data, epochs=2, validation=data)


@pytest.mark.parametrize("validated", [False, True])
def test_stop_after_an_epoch(make, data, validated):
    model, again = make(), make()
    validation = data if validated else None
    stopping = at("after_epoch", 2, stop)
    history = fit(model, data, SpoiledFrom(2), stopping, validation=validation)
    assert (history.stopped, len(history.train_loss)) == ("callback", 2)
    assert history.best_epoch == (1 if validated else 2)
    fit(again, data, SpoiledFrom(2), epochs=history.best_epoch)
    assert_same_weights(model, again)


def test_stop_at_the_start_takes_no_step(make, data):
    model = make()
    noted = Noted()
    history = fit(model, data, at("on_start", 1, stop), noted)
    assert noted.names() == ["on_start", "after_training", "on_end"]
    assert (history.stopped, history.best_epoch, history.train_loss) == ("callback", None, [])
    assert_same_weights(model, make())


def test_the_first_reason_counts(make, data):
    noted = Noted(lambda state: (state.stopping, state.history.stopped))
    first = at("after_step", 6, lambda state: state.stop("time is up"))
    second = at("after_step", 6, lambda state: state.stop("enough"))
    assert fit(make(), data, first, second, noted).stopped == "time is up"
    assert fit(make(), data, at("on_end", 1, stop)).stopped == "finished"  # too late
    assert noted.seen("after_step")[-2:] == [(None, "finished"), ("time is up", "finished")]
    assert noted.seen("on_end") == [("time is up", "time is up")]


@pytest.mark.parametrize(
    ("reason", "error", "message"),
    [
        (None, TypeError, "reason is None; expected a reason"),
        ("", ValueError, "reason is ''; expected a reason of your own"),
        ("interrupted", ValueError, "reason is 'interrupted'; expected a reason of your own"),
    ],
)
def test_a_reason_is_a_word_of_ones_own(make, data, reason, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, lambda state: state.stop(reason))


def test_patience_stops_before_a_callback_does_so_in_the_same_epoch(make, data):
    noted = Noted(lambda state: state.stopping)
    stopping = at("after_epoch", 2, stop)
    history = fit(make(), data, noted, stopping, validation=data, epochs=9, lr=1e-300, patience=1)
    assert (history.stopped, len(history.train_loss)) == ("patience", 2)
    assert noted.seen("after_epoch") == [None, "patience"]


@pytest.mark.parametrize(
    ("schedule", "named"), [(lambda _: 1e299, "the loss"), (lambda _: 1e308, "the update")]
)
def test_losses_that_were_not_read_are_checked_when_a_callback_stops(make, data, schedule, named):
    """Steps 1 and 2 stay unread until the end; or there is no loss after the only update."""
    stopping = at("after_step", 2 if named == "the loss" else 1, stop)
    with pytest.raises(nf.NonFiniteLossError, match=f"^{named} is not finite"):
        fit(
            make(),
            data,
            stopping,
            validation=data,
            check_every=100,
            lr=10.0,
            schedule=schedule,
        )


# What goes wrong ----------------------------------------------------------------------------------
ERRORS = pytest.mark.parametrize(
    ("hook", "error"),
    [("before_update", KeyError()), ("after_step", MemoryError()), ("after_epoch", SystemExit())],
)


def raise_in_epoch_2(hook, error):
    """Return a callback that raises an error at a hook of epoch 2."""
    return at(hook, 2 if hook == "after_epoch" else 6, throw(error))


@ERRORS
def test_an_error_in_a_callback_is_raised(make, data, hook, error):
    with pytest.raises(type(error)) as caught:
        fit(make(), data, raise_in_epoch_2(hook, error), validation=data)
    assert caught.value is error


@ERRORS
def test_an_error_in_a_callback_brings_the_best_weights_back(make, data, hook, error):
    model = make()
    noted = Noted(lambda state: (state.history.stopped, state.history.best_epoch))
    with pytest.raises(type(error)):
        fit(model, data, SpoiledFrom(2), noted, raise_in_epoch_2(hook, error), validation=data)
    assert noted.seen("on_end") == [("error", 1)]
    assert_trained(model, make(), data, epochs=1)


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_ctrl_c_in_a_callback(make, data, on_interrupt):
    model = make()
    noted = Noted(lambda state: state.history.stopped)
    interrupt = at("after_step", 6, throw(KeyboardInterrupt()))
    options = {"validation": data, "on_interrupt": on_interrupt}
    if on_interrupt == "raise":
        with pytest.raises(KeyboardInterrupt):
            fit(model, data, noted, interrupt, **options)
    else:
        history = fit(model, data, noted, interrupt, **options)
        assert (history.stopped, history.best_epoch) == ("interrupted", 1)
    assert noted.seen("on_end") == ["interrupted"]
    assert_trained(model, make(), data, epochs=1)


def test_ctrl_c_between_two_epochs_leaves_the_weights_of_the_first(make, data):
    model = make()
    interrupt = throw(KeyboardInterrupt())
    history = fit(model, data, at("after_epoch", 2, interrupt), on_interrupt="return")
    assert (history.stopped, history.best_epoch) == ("interrupted", 2)
    assert_trained(model, make(), data, epochs=2)
    again = fit(
        make(),
        data,
        at("after_epoch", 2, stop),
        at("after_epoch", 2, interrupt),
        on_interrupt="return",
    )
    assert again.stopped == "interrupted"


def test_only_what_was_started_is_ended(make, data):
    calls = []
    first, last = Noted(calls=calls), Noted(calls=calls)
    with pytest.raises(ZeroDivisionError):
        fit(make(), data, first, at("on_start", 1, throw(ZeroDivisionError())), last)
    assert calls == [("on_start", None), ("on_end", None)]


def test_an_error_at_the_end_of_one_does_not_keep_the_others_from_ending(make, data):
    model = make()
    noted = Noted()
    with pytest.raises(ZeroDivisionError):
        fit(model, data, at("on_end", 1, throw(ZeroDivisionError())), noted)
    assert noted.names()[-1] == "on_end"
    assert_trained(model, make(), data, EPOCHS)


@pytest.mark.parametrize("hook", ["before_update", "after_epoch"])
def test_the_loss_is_checked_before_callbacks_see_it(make, data, hook):
    noted = Noted()
    if hook == "before_update":
        data[0][:] = math.nan
    validation = None if hook == "before_update" else (data[0] * math.nan, data[1])
    with pytest.raises(nf.NonFiniteLossError):
        fit(make(), data, noted, validation=validation)
    assert hook not in noted.names()
    assert noted.names()[-1] == "on_end"


def test_a_callback_computes_under_its_callers_settings_for_overflow(make, data):
    noted = Noted(lambda state: np.geterr())
    with np.errstate(over="raise", invalid="print"):
        expected = np.geterr()
        fit(make(), data, noted)
    assert [settings for _, settings in noted.calls] == [expected] * len(noted.calls)


# What a callback may change -----------------------------------------------------------------------
@pytest.mark.parametrize(("hook", "number"), [("before_update", 5), ("after_step", 4)])
def test_a_callback_that_changes_lr_is_a_schedule(make, data, hook, number):
    """From step 5 on; the history has what the last step of an epoch was made with."""

    def halve(state):
        state.optimizer.lr = 0.5 * 1e-2

    model = make()
    history = fit(model, data, at(hook, number, halve))
    assert_trained(model, make(), data, EPOCHS, schedule=lambda step: 1.0 if step < 5 else 0.5)
    assert history.lr == [1e-2, 5e-3, 5e-3]


@pytest.mark.parametrize("workers", [1, 2])
def test_weights_that_a_callback_writes_are_those_of_the_next_step(make, data, workers):
    def zero(state):
        for value in state.model.parameters().values():
            value[...] = 0.0

    model = make()
    noted = Noted(lambda state: state.loss)
    fit(model, data, at("after_step", 6, zero), noted, workers=workers, epochs=2)
    assert noted.seen("before_update")[6] == pytest.approx(math.log(3), rel=1e-12)
    assert noted.seen("before_update")[5] != pytest.approx(math.log(3), rel=1e-3)


def test_gradients_may_be_changed_before_the_update(make, data):
    def freeze(self, state):
        state.gradients["classify.weight"][...] = 0.0

    model = make()
    fit(model, data, having("before_update", takes=freeze))
    same = {n for n, v in make().parameters().items() if (model.parameters()[n] == v).all()}
    assert same == {"classify.weight"}


def test_weights_spoiled_after_the_last_epoch_are_reported(make, data):
    def spoil(state):
        state.model.parameters()["classify.weight"][...] = math.nan

    with pytest.raises(nf.NonFiniteLossError, match=r"parameter classify\.weight"):
        fit(make(), data, at("after_epoch", EPOCHS, spoil))


# Wrong callbacks ----------------------------------------------------------------------------------
def having(method, *, base=nf.Callback, takes=lambda self, state: None):
    """Return an object of a class Plugin with one method."""
    return type("Plugin", (base,), {method: takes})()


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (None, r"callbacks is None; expected a list of .* Write callbacks=\[\.\.\.\]"),
        (Noted(), r"callbacks is a Noted; expected a list"),
        (print, "callbacks is the function print; expected a list"),
        ("after_epoch", "callbacks is 'after_epoch'; expected a list"),
        ([print, 3], r"callbacks\[1\] is 3; expected an npformer.Callback, or a function"),
        ([None], r"callbacks\[0\] is None; expected an npformer.Callback"),
        (
            [having("after_epoch", base=object)],
            r"callbacks\[0\] is a .* the class from npformer.Callback",
        ),
        ([Noted], r"callbacks\[0\] is the class Noted; .* Write Noted\(\.\.\.\)"),
        ([having("on_epoch_end")], r"callbacks\[0\], a Plugin, has on_epoch_end, which fit does"),
        ([having("after_epochs")], r"has after_epochs, .* Did you mean 'after_epoch'\?"),
        (
            [having("after_step", takes=lambda self: None)],
            r"after_step of .* called .*\(self, state\)",
        ),
        ([lambda state, history: None], r"callbacks\[0\] cannot be called with the .*'history'"),
        ([lambda: None], r"callbacks\[0\] cannot be called .* one argument: \(state\)"),
    ],
)
def test_wrong_callbacks_are_refused_before_the_first_step(make, data, callbacks, message):
    model = make()
    with pytest.raises(TypeError, match=message):
        nf.fit(model, data, callbacks=callbacks, progress=False)
    assert_same_weights(model, make())


def test_a_callback_may_have_members_that_are_no_hooks(make, data):
    class Own(nf.Callback):
        after_how_many = 2

        def _on_second(self, state):
            state.stop("second")

        def after_epoch(self, state, *, extra=None):
            if state.epoch == self.after_how_many:
                self._on_second(state)

    assert fit(make(), data, Own()).stopped == "second"
