"""A training that goes wrong: NaN and infinity, Ctrl-C, other errors."""

import math

import numpy as np
import pytest

import npformer as nf
from npformer.engine import team
from tests.training.common import BATCH, assert_trained, fit


# NaN and infinity ---------------------------------------------------------------------------------
@pytest.mark.parametrize("check_every", [1, 7])
def test_nan_in_the_data_is_named_with_its_step(make, data, check_every):
    data[0][13, 2, 1] = math.nan
    step = 1 + list(np.random.default_rng(0).permutation(20)).index(13) // BATCH
    with pytest.raises(nf.NonFiniteLossError, match=f"at step {step}; .* the input x") as caught:
        fit(make(), data, check_every=check_every)
    assert (caught.value.step, caught.value.tensor) == (step, "the input x")


@pytest.mark.parametrize(
    ("dtype", "lr", "check_every", "clip_norm", "workers"),
    [
        ("float32", 1e30, 1, None, 1),
        ("float32", 1e39, 7, 1.0, 1),
        ("float64", 1e300, 1, 1.0, 2),
        ("float64", 1e300, 7, None, 2),
    ],
)
def test_a_huge_learning_rate_is_reported(make, data, dtype, lr, check_every, clip_norm, workers):
    model = make(dtype=dtype)
    x, y = data
    with pytest.raises(nf.NonFiniteLossError, match="Use a smaller lr") as caught:
        fit(
            model,
            (x.astype(dtype), y),
            lr=lr,
            weight_decay=0.1,
            clip_norm=clip_norm,
            check_every=check_every,
            workers=workers,
        )
    assert caught.value.step == 2
    named = caught.value.tensor.removeprefix("parameter ").removeprefix("the output of ")
    assert named.split(" (")[0] in {*model.parameters(), *dict(model.layers())}


@pytest.mark.parametrize("check_every", [1, 7])
def test_a_parameter_that_is_not_finite_is_named(make, data, check_every):
    model = make()
    name = "encoder.blocks.1.mixer.key.weight"

    def poison(step):
        if step == 5:
            model.parameters()[name][...] = math.nan
        return 1.0

    with pytest.raises(nf.NonFiniteLossError, match="at step 6;") as caught:
        fit(model, data, schedule=poison, check_every=check_every)
    assert "check_every=1" not in str(caught.value)
    assert caught.value.tensor == f"parameter {name}"


@pytest.mark.parametrize("check_every", [1, 7])
@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_a_bad_gradient_at_a_finite_loss_is_named(make, data, validation, check_every, clip_norm):
    class Poison(nf.Callback):
        def before_update(self, state):
            if state.step == 10:
                state.gradients["encoder.blocks.1.mixer.key.weight"][0, 1] = math.inf

    model = make()
    wrong = r"the gradient of encoder\.blocks\.1\.mixer\.key\.weight holds infinity"
    with pytest.raises(nf.NonFiniteGradientError, match=wrong) as caught:
        fit(
            model,
            data,
            Poison(),
            validation=validation,
            clip_norm=clip_norm,
            check_every=check_every,
        )
    assert caught.value.parameter == "encoder.blocks.1.mixer.key.weight"
    assert_trained(model, make(), data, epochs=2, clip_norm=clip_norm)


def test_the_best_weights_are_put_back_before_the_error_reaches_the_caller(make, data, validation):
    def schedule(step):
        return 1.0 if step < 10 else 1e305

    model = make()
    with pytest.raises(nf.NonFiniteLossError, match=r"has the best weights so far, .* epoch 2"):
        fit(model, data, validation=validation, schedule=schedule)
    assert_trained(model, make(), data, epochs=2)
    with pytest.raises(nf.NonFiniteLossError, match="No best weights were kept"):
        fit(make(), data, lr=1e300)


def test_weights_ruined_by_the_last_step_of_an_epoch_are_not_kept_as_the_best(make, data):
    with pytest.raises(nf.NonFiniteLossError, match="the validation loss is not finite at step 1"):
        fit(make(), data, validation=data, batch_size=20, lr=1e300)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_last_update_that_ruins_the_weights_is_reported(make, data, epochs):
    def schedule(step):
        return 1e-6 if step < epochs else 1e308

    with pytest.raises(nf.NonFiniteLossError, match="the update is not finite at step") as caught:
        fit(make(), data, batch_size=20, epochs=epochs, lr=1e3, schedule=schedule)
    assert caught.value.step == epochs
    assert caught.value.tensor.startswith("parameter ")


def adam(parameters):
    return nf.Adam(parameters, lr=1e30)


def sgd(parameters):
    return nf.SGD(parameters, lr=1e30)


@pytest.mark.parametrize("optimizer", [adam, sgd])
@pytest.mark.parametrize("batch_size", [20, 7])
def test_nan_in_answers_of_finite_weights_is_reported(make, data, optimizer, batch_size):
    single = data[0].astype("float32"), data[1]
    model = make(dtype="float32")
    with pytest.raises(nf.NonFiniteLossError, match="is not finite at step"):
        fit(
            model,
            single,
            optimizer=optimizer(model.parameters()),
            epochs=1,
            batch_size=batch_size,
        )
    assert np.isfinite(model.parameters().flat).all()


def test_the_loss_after_the_last_update_is_named(make, data):
    with pytest.raises(nf.NonFiniteLossError, match="the loss after the last update is not") as it:
        fit(
            make(dtype="float32"),
            (data[0].astype("float32"), data[1]),
            epochs=1,
            batch_size=20,
            lr=1e30,
        )
    assert it.value.step == 1


def test_nan_in_the_validation_data_is_named(make, data, validation):
    validation[0][3, 0, 0] = math.nan
    with pytest.raises(nf.NonFiniteLossError, match=r"the validation loss .* the input x"):
        fit(make(), data, validation=validation)


# Ctrl-C -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_inside_a_step_is_caught_too(make, data, monkeypatch, workers):
    model = make()
    calls = []
    accumulate = team.accumulate

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) > 6 * workers:
            raise KeyboardInterrupt
        return accumulate(*arguments, **options)

    monkeypatch.setattr(team, "accumulate", interrupted)
    options = {"workers": workers, "on_interrupt": "return"}
    history = fit(model, data, validation=data, **options)
    assert (history.stopped, history.best_epoch) == ("interrupted", 1)
