"""fit and evaluate: what is learned, what is kept, and what happens when something goes wrong."""

import json
import math
import multiprocessing

import numpy as np
import pytest

import npformer as nf
from npformer.engine import workers as engine_workers
from npformer.engine.workers import Team
from npformer.optim import Adam, global_norm

EPOCHS, BATCH = 4, 5


@pytest.fixture
def data(rng):
    """Twenty sequences of two features; the sign of one entry is the label."""
    x = rng.normal(size=(20, 4, 2))
    return x, (x[:, 1, 0] > 0).astype("int64")


@pytest.fixture
def validation():
    x = np.random.default_rng(1).normal(size=(40, 4, 2))
    return x, (x[:, 1, 0] > 0).astype("int64")


@pytest.fixture
def make(small_model):
    """Make a classifier for `data`, with changes."""

    def build(**changes):
        return small_model(**({"n_features": 2, "pooling": "flatten", "max_len": 4} | changes))

    return build


def fit(model, data, **changes):
    usual = {"epochs": EPOCHS, "batch_size": BATCH, "progress": False}
    if "optimizer" not in changes:
        usual["lr"] = 1e-2
    return nf.fit(model, data, **(usual | changes))


def weights(model):
    return {name: value.copy() for name, value in model.parameters().items()}


def assert_same_weights(model, other):
    for name, value in other.parameters().items():
        np.testing.assert_array_equal(model.parameters()[name], value, err_msg=name)


def raise_at(step, error):
    """Return a schedule that raises at a step."""

    def schedule(now):
        if now == step:
            raise error
        return 1.0

    return schedule


# Learning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loss_falls(make, data, dtype):
    x, y = data
    history = fit(make(dtype=dtype), (x.astype(dtype), y), epochs=20)
    assert history.train_loss[-1] < 0.2 * history.train_loss[0]
    assert history.stopped == "finished"


def test_what_was_learned_holds_for_other_data(make, rng, validation):
    x, model = rng.normal(size=(300, 4, 2)), make()
    fit(model, (x, (x[:, 1, 0] > 0).astype("int64")), epochs=10, batch_size=20)
    assert nf.evaluate(model, validation).accuracy > 0.8


def test_an_epoch_sees_every_sample_once_and_in_a_new_order(make, data, monkeypatch):
    seen, step = [], Team.step
    x, y = data
    x[:, 0, 0] = np.arange(20)

    def watched(self, batch, *arguments, **options):
        seen.extend(batch.x[:, 0, 0])
        return step(self, batch, *arguments, **options)

    monkeypatch.setattr(Team, "step", watched)
    fit(make(), (x, y), epochs=2, batch_size=6)
    first, second = seen[:20], seen[20:]
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second


def test_history_has_one_entry_an_epoch(make, data, validation):
    history = fit(make(), data, validation=validation).to_dict()
    for name in ("train_loss", "validation_loss", "validation_accuracy", "lr", "seconds"):
        assert len(history[name]) == EPOCHS
    assert json.loads(json.dumps(history)) == history


def test_history_has_the_learning_rate_of_the_last_step_of_each_epoch(make, data):
    history = fit(make(), data, lr=1e-3, schedule=lambda step: 1.0 / step)
    assert history.lr == pytest.approx([1e-3 / 4, 1e-3 / 8, 1e-3 / 12, 1e-3 / 16])


def test_history_is_json_whatever_the_schedule_returns(make, data):
    history = fit(make(), data, schedule=lambda step: np.float32(1.0 / step))
    assert json.loads(json.dumps(history.to_dict())) == history.to_dict()


def test_the_training_loss_is_the_mean_of_the_steps(make, data):
    x, y = data
    order = np.random.default_rng(0).permutation(20)
    model = make()
    halves = [model.loss_and_gradients(x[rows], y[rows])[0] for rows in (order[:10], order[10:])]
    history = fit(model, data, epochs=1, batch_size=10, lr=1e-300)
    assert history.train_loss[0] == pytest.approx(np.mean(halves), rel=1e-12)


def test_label_smoothing_is_in_the_training_loss_and_not_in_the_validation_loss(make, data):
    model = make()
    smoothed, _ = model.loss_and_gradients(*data, label_smoothing=0.3)
    plain = nf.evaluate(model, data).loss
    history = fit(
        model, data, validation=data, epochs=1, batch_size=20, lr=1e-300, label_smoothing=0.3
    )
    assert history.train_loss[0] == pytest.approx(smoothed, rel=1e-12)
    assert history.validation_loss[0] == pytest.approx(plain, rel=1e-12)
    assert abs(smoothed - plain) > 1e-3


class Watched(Adam):
    """An optimizer that notes the norms of the gradients it is given."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.norms = []

    def step(self, gradients):
        self.norms.append(float(global_norm(gradients)))
        super().step(gradients)


def test_an_optimizer_that_is_given_is_used(make, data):
    model, other = make(), make()
    optimizer = Watched(model.parameters(), lr=1e-2)
    fit(model, data, optimizer=optimizer)
    fit(other, data, lr=1e-2)
    assert optimizer.steps == EPOCHS * 4
    assert_same_weights(model, other)


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ({"lr": 1e-2}, "lr=0.01"),
        ({"weight_decay": 0.0}, r"weight_decay=0\.0"),
        ({"schedule": lambda step: 1.0, "weight_decay": 0.1}, r"schedule=.* and weight_decay=0\.1"),
    ],
)
def test_an_optimizer_and_what_it_would_be_made_from_are_one_too_many(make, data, beside, named):
    model = make()
    before = model.parameters().flat.copy()
    with pytest.raises(ValueError, match=f"optimizer is given, and {named} beside it"):
        fit(model, data, optimizer=Watched(model.parameters(), lr=1e-2), **beside)
    np.testing.assert_array_equal(model.parameters().flat, before)


def test_an_optimizer_of_another_model_is_refused(make, data):
    model, other = make(), make()
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        fit(model, data, optimizer=Adam(other.parameters()))
    for trained in (model, other):
        assert_same_weights(trained, make())


def test_an_optimizer_of_the_models_arrays_is_one_of_the_model(make, data):
    model, other = make(), make()
    fit(model, data, optimizer=Adam(dict(model.parameters()), lr=1e-2))
    fit(other, data, lr=1e-2)
    for name, value in other.parameters().items():
        np.testing.assert_allclose(model.parameters()[name], value, rtol=0, atol=1e-8, err_msg=name)


def test_an_optimizer_goes_on_where_it_was(make, data):
    model = make()
    optimizer = Watched(model.parameters(), lr=1e-2)
    fit(model, data, optimizer=optimizer)
    fit(model, data, optimizer=optimizer)
    assert optimizer.steps == 2 * EPOCHS * 4


def test_clip_norm_bounds_every_step(make, data):
    model, other = make(), make()
    clipped, free = Watched(model.parameters()), Watched(other.parameters())
    fit(model, data, optimizer=clipped, clip_norm=0.01)
    fit(other, data, optimizer=free)
    assert max(clipped.norms) <= 0.01 < min(free.norms)


def test_weight_decay_shrinks_the_weights(make, data):
    model, other = make(), make()
    fit(model, data, weight_decay=10.0)
    fit(other, data)
    assert global_norm(model.parameters()) < global_norm(other.parameters())


def test_what_padding_holds_does_not_change_training(small_model, token_batch):
    ids, labels, mask = token_batch
    model, other = small_model(), small_model()
    history = fit(model, (ids, labels, mask), validation=(ids, labels, mask))
    junk = np.where(mask, ids, 6 - ids)
    again = fit(other, (junk, labels, mask), validation=(junk, labels, mask))
    assert again.train_loss == pytest.approx(history.train_loss, rel=1e-9)
    assert again.validation_loss == pytest.approx(history.validation_loss, rel=1e-9)


def test_padding_may_hold_nan_and_is_never_the_culprit(make, data):
    x, y = data
    mask = np.arange(4) < np.array([4, 2, 3, 1, 4] * 4)[:, None]
    empty, nan = x.copy(), x.copy()
    empty[~mask], nan[~mask] = 0.0, math.nan
    histories = [fit(make(pooling="mean"), (each, y, mask)).train_loss for each in (empty, nan)]
    assert histories[0] == histories[1]
    with pytest.raises(nf.NonFiniteLossError, match=r"is (parameter|the output of) "):
        fit(make(pooling="mean"), (nan, y, mask), lr=1e300)


def test_labels_of_padding_do_not_count(small_model, token_batch, rng):
    ids, _, mask = token_batch
    labels = rng.integers(0, 3, ids.shape)
    marked = np.where(mask, labels, -1)
    histories, found = [], []
    for each in (labels, marked):
        model = small_model(pooling="none")
        histories.append(fit(model, (ids, each, mask)).train_loss)
        found.append(nf.evaluate(model, (ids, each, mask)))
    assert histories[0] == histories[1]
    assert found[0] == found[1]
    assert found[0].labels == mask.sum()


def test_labels_of_tokens_are_learned_and_minus_one_is_no_label(small_model, rng):
    ids = rng.integers(0, 7, (12, 6))
    labels = ids % 3
    labels[:, 3:] = -1
    labels[0] = -1
    model = small_model(pooling="none")
    history = fit(model, (ids, labels), epochs=15)
    found = nf.evaluate(model, (ids, labels))
    assert history.train_loss[-1] < 0.3 * history.train_loss[0]
    assert (found.labels, found.accuracy) == (33, 1.0)


def test_a_single_logit_learns_two_classes(make, data):
    model = make(n_classes=2, output="sigmoid")
    history = fit(model, data, epochs=20)
    assert history.train_loss[-1] < 0.2 * history.train_loss[0]
    assert nf.evaluate(model, data).accuracy == 1.0


# The same again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_seed_means_the_same_run_bit_for_bit(make, data, validation, workers, dropout):
    runs = []
    for _ in range(2):
        model = make(dropout=dropout)
        history = fit(model, data, validation=validation, seed=7, workers=workers).to_dict()
        del history["seconds"]
        runs.append((model, history))
    (model, history), (other, again) = runs
    assert_same_weights(model, other)
    assert history == again


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_another_seed_means_another_run(make, data, dropout):
    histories = [fit(make(dropout=dropout), data, seed=seed) for seed in (0, 1)]
    assert histories[0].train_loss != histories[1].train_loss


def test_dropout_is_drawn_from_the_seed(make, data):
    x, y = data
    one = x[:1], y[:1]  # a single sample has only one order
    losses = [fit(make(dropout=0.3), one, epochs=2, seed=seed).train_loss for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


def test_the_number_of_workers_changes_only_the_rounding(make, data):
    histories = [fit(make(), data, workers=workers) for workers in (1, 2, 3)]
    for history in histories[1:]:
        assert history.train_loss == pytest.approx(histories[0].train_loss, rel=1e-8)


def test_threads_and_processes_are_the_same_run_bit_for_bit(make, data, validation):
    runs = []
    for processes in (False, "auto"):
        model = make(dropout=0.3)
        history = fit(model, data, validation=validation, workers=2, processes=processes)
        runs.append((model, history.train_loss, history.validation_loss))
    assert_same_weights(runs[0][0], runs[1][0])
    assert runs[0][1:] == runs[1][1:]
    assert not multiprocessing.active_children()


def test_on_a_cpu_host_and_device_are_one(make, data):
    losses = [fit(make(dropout=0.3), data, masks=masks).train_loss for masks in ("host", "device")]
    assert losses[0] == losses[1]


def test_how_often_losses_are_read_changes_nothing(make, data):
    histories = [fit(make(), data, check_every=every).train_loss for every in (1, 3, 100)]
    assert histories[0] == histories[1] == histories[2]


# The best weights ---------------------------------------------------------------------------------


def spoiled_from(epoch):
    """Return a schedule under which training goes well, and from some epoch on wildly."""
    return lambda step: 1.0 if step <= 4 * (epoch - 1) else 1000.0


def test_the_model_ends_with_the_weights_of_the_best_epoch(make, data, validation):
    model, twin = make(), make()
    history = fit(model, data, validation=validation, epochs=10, schedule=spoiled_from(8))
    best = history.best_epoch
    assert best < 8
    assert history.validation_accuracy[-1] < max(history.validation_accuracy)
    found = nf.evaluate(model, validation)
    assert found.accuracy == max(history.validation_accuracy)
    assert found.loss == history.validation_loss[best - 1]
    fit(twin, data, epochs=best)
    assert_same_weights(model, twin)


def test_of_epochs_equally_accurate_the_lower_loss_is_better(make, data, monkeypatch):
    found = iter([(0.5, 3.0), (0.9, 2.0), (0.9, 1.0), (0.9, 1.0), (0.8, 0.1)])
    monkeypatch.setattr(
        "npformer.training.loop.measure",
        lambda *arguments: nf.Evaluation(*reversed(next(found)), labels=1),
    )
    assert fit(make(), data, validation=data, epochs=5).best_epoch == 3


def test_without_validation_data_the_last_weights_stay(make, data):
    history = fit(make(), data)
    assert history.best_epoch == EPOCHS
    assert history.validation_loss == history.validation_accuracy == []


@pytest.mark.parametrize("patience", [1, 3])
def test_patience_stops_after_so_many_epochs_without_a_better_one(make, data, patience):
    history = fit(make(), data, validation=data, epochs=20, lr=1e-300, patience=patience)
    assert history.stopped == "patience"
    assert len(history.train_loss) == 1 + patience
    assert history.best_epoch == 1


def test_patience_waits_as_long_as_there_are_better_ones(make, data):
    history = fit(make(), data, validation=data, lr=1e-4, patience=1)
    assert history.stopped == "finished"


# NaN and infinity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("check_every", [1, 7])
def test_nan_in_the_data_is_named_with_its_step(make, data, check_every):
    data[0][13, 2, 1] = math.nan
    step = 1 + list(np.random.default_rng(0).permutation(20)).index(13) // BATCH
    with pytest.raises(nf.NonFiniteLossError, match=f"at step {step}; .* the input x") as caught:
        fit(make(), data, check_every=check_every)
    assert (caught.value.step, caught.value.tensor) == (step, "the input x")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("check_every", [1, 7])
@pytest.mark.parametrize("clip_norm", [None, 1.0])
@pytest.mark.parametrize(
    ("dtype", "lr"), [("float32", 1e30), ("float32", 1e39), ("float64", 1e300)]
)
def test_a_monstrous_learning_rate_is_told_without_a_warning(
    make, data, check_every, clip_norm, dtype, lr, workers
):
    model = make(dtype=dtype)
    x, y = data
    options = {"check_every": check_every, "clip_norm": clip_norm, "workers": workers}
    with pytest.raises(nf.NonFiniteLossError, match="Use a smaller lr") as caught:
        fit(model, (x.astype(dtype), y), lr=lr, weight_decay=0.1, **options)
    assert caught.value.step == 2
    named = caught.value.tensor.removeprefix("parameter ").removeprefix("the output of ")
    assert named.split(" (")[0] in {*model.parameters(), *dict(model.layers())}


@pytest.mark.parametrize(("check_every", "remark"), [(1, False), (7, True)])
def test_a_parameter_that_is_not_finite_is_named(make, data, check_every, remark):
    model, name = make(), "encoder.blocks.1.mixer.key.weight"

    def poison(step):
        if step == 5:
            model.parameters()[name][...] = math.nan
        return 1.0

    with pytest.raises(nf.NonFiniteLossError, match="at step 6;") as caught:
        fit(model, data, schedule=poison, check_every=check_every)
    assert ("check_every=1" in str(caught.value)) == remark
    if not remark:
        assert caught.value.tensor == f"parameter {name}"


def test_an_output_that_is_not_finite_is_named_by_its_layer(make, data):
    model = make()
    model.parameters()["classify.weight"][...] = 1e308
    with pytest.raises(nf.NonFiniteLossError) as caught:
        fit(model, data)
    assert caught.value.step == 1
    assert caught.value.tensor == "the output of classify (Linear)"


def test_the_best_weights_are_put_back_before_the_loss_is_complained_about(make, data, validation):
    model, twin = make(), make()

    def schedule(step):
        return 1.0 if step < 10 else 1e305

    with pytest.raises(nf.NonFiniteLossError, match=r"has the best weights so far, .* epoch 2"):
        fit(model, data, validation=validation, schedule=schedule)
    fit(twin, data, epochs=2)
    assert_same_weights(model, twin)


def test_without_best_weights_the_error_says_so(make, data):
    with pytest.raises(nf.NonFiniteLossError, match="No best weights were kept"):
        fit(make(), data, lr=1e300)


def test_an_update_that_ruins_the_last_step_of_an_epoch_is_not_kept_as_the_best(make, data):
    with pytest.raises(nf.NonFiniteLossError, match="the validation loss is not finite at step 1"):
        fit(make(), data, validation=data, batch_size=20, lr=1e300)


@pytest.mark.parametrize("epochs", [1, 2])
def test_an_update_that_ruins_the_last_step_of_all_is_told(make, data, epochs):
    def schedule(step):
        return 1e-3 if step < epochs else math.inf

    with pytest.raises(nf.NonFiniteLossError, match="the update is not finite at step") as caught:
        fit(make(), data, batch_size=20, epochs=epochs, lr=1.0, schedule=schedule)
    assert caught.value.step == epochs
    assert caught.value.tensor.startswith("parameter ")


def test_nan_in_the_validation_data_is_named(make, data, validation):
    validation[0][3, 0, 0] = math.nan
    with pytest.raises(nf.NonFiniteLossError, match=r"the validation loss .* the input x"):
        fit(make(), data, validation=validation)


# Ctrl-C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_ctrl_c_keeps_the_best_weights(make, data, validation, on_interrupt):
    model, twin = make(), make()
    options = {
        "validation": validation,
        "schedule": raise_at(11, KeyboardInterrupt()),
        "on_interrupt": on_interrupt,
    }
    if on_interrupt == "raise":
        with pytest.raises(KeyboardInterrupt):
            fit(model, data, **options)
    else:
        history = fit(model, data, **options)
        assert (history.stopped, history.best_epoch) == ("interrupted", 2)
        assert len(history.train_loss) == 2
    fit(twin, data, epochs=2)
    assert_same_weights(model, twin)


@pytest.mark.parametrize(("workers", "processes"), [(1, False), (2, False), (2, "auto")])
def test_ctrl_c_inside_a_step_is_caught_too(make, data, monkeypatch, workers, processes):
    model = make()
    counted = workers if processes is False else 1  # in a copy, calls are counted there
    calls, accumulate = [], engine_workers.accumulate

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) > 6 * counted:
            raise KeyboardInterrupt
        return accumulate(*arguments, **options)

    monkeypatch.setattr(engine_workers, "accumulate", interrupted)
    options = {"workers": workers, "processes": processes, "on_interrupt": "return"}
    history = fit(model, data, validation=data, **options)
    assert (history.stopped, history.best_epoch) == ("interrupted", 1)
    assert not multiprocessing.active_children()


def test_ctrl_c_in_the_middle_of_an_epoch_leaves_no_epoch_to_name(make, data):
    schedule = raise_at(6, KeyboardInterrupt())
    history = fit(make(), data, schedule=schedule, on_interrupt="return")
    assert (history.stopped, history.best_epoch) == ("interrupted", None)
    assert len(history.train_loss) == 1


def test_after_any_other_error_the_best_weights_are_back(make, data, validation):
    model, twin = make(), make()
    with pytest.raises(ZeroDivisionError):
        fit(model, data, validation=validation, schedule=raise_at(11, ZeroDivisionError()))
    fit(twin, data, epochs=2)
    assert_same_weights(model, twin)


# Bad calls ----------------------------------------------------------------------------------------


def X(*shape):
    return np.zeros(shape)


def Y(n):
    return np.zeros(n, dtype="int64")


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (X(3, 4, 2), TypeError, r"data is a ndarray; expected \(x, y\) or \(x, y, mask\)"),
        ((X(3, 4, 2),), TypeError, r"data is a tuple of 1; expected \(x, y\)"),
        ({"x": 1}, TypeError, r"data is a dict; expected \(x, y\)"),
        ((X(3, 4, 2), Y(4)), ValueError, "y in data has 4 samples and x has 3"),
        ((X(3, 4, 2), Y(3), X(2, 4) == 0), ValueError, "mask in data has 2 samples and x has 3"),
        ((X(3, 4, 2).tolist(), Y(3)), TypeError, "x in data is a list; expected a NumPy array"),
        ((X(3, 4, 2), [0, 1, 2]), TypeError, "y in data is a list; expected a NumPy array"),
        ((X(0, 4, 2), Y(0)), ValueError, "data has no samples; expected at least 1"),
        ((X(3, 4, 3), Y(3)), ValueError, r"data, x has shape \(3, 4, 3\); expected"),
        ((X(3, 4, 2), X(3)), TypeError, "data, y has dtype float64; expected whole numbers"),
        ((X(3, 4, 2), Y(3) - 1), ValueError, "data, y holds -1; expected whole numbers from 0"),
        ((X(3, 4, 2), Y(3), X(3, 4)), TypeError, "data, mask has dtype float64; expected a bool"),
    ],
)
@pytest.mark.parametrize("where", ["data", "validation"])
def test_bad_data_is_refused_in_words(make, data, bad, error, message, where):
    good = data
    options = {"validation": bad} if where == "validation" else {}
    with pytest.raises(error, match=message.replace("data", where, 1)):
        fit(make(), good if where == "validation" else bad, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs is 0; expected a whole number of at least 1"),
        ({"epochs": 2.0}, ValueError, "epochs is 2.0; expected a whole number"),
        ({"batch_size": 0}, ValueError, "batch_size is 0; expected a whole number"),
        ({"check_every": 0}, ValueError, "check_every is 0; expected a whole number"),
        ({"on_interrupt": "ask"}, ValueError, "on_interrupt is 'ask'; expected one of 'raise'"),
        ({"patience": 3}, ValueError, "patience is 3 and there is no validation data"),
        ({"patience": 0}, ValueError, "patience is 0; expected a whole number of at least 1"),
        ({"clip_norm": 0.0}, ValueError, "clip_norm is 0.0; expected a number above 0"),
        ({"micro_batch": "a"}, ValueError, "micro_batch is 'a'; expected a whole number"),
        ({"weight_decay": "a"}, ValueError, "weight_decay is 'a'; expected 0 or more"),
        ({"schedule": 3}, TypeError, "schedule is 3; expected a function of the step"),
        ({"optimizer": 3}, TypeError, "optimizer is 3; expected an npformer.Adam"),
        ({"clip_norm": math.inf}, ValueError, "clip_norm is inf; expected a number above 0"),
        ({"lr": 0.0}, ValueError, "lr is 0.0; expected a number above 0"),
        ({"label_smoothing": 1.0}, ValueError, "label_smoothing is 1.0; expected a number from 0"),
        ({"seed": None}, TypeError, "seed is None; expected a whole number"),
        ({"workers": 0}, ValueError, "workers is 0; expected a whole number"),
        ({"processes": "no"}, ValueError, "processes is 'no'; expected True, False or 'auto'"),
        ({"masks": "gpu"}, ValueError, "masks is 'gpu'; expected one of 'host', 'device'"),
    ],
)
def test_a_bad_option_is_refused_in_words(make, data, options, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, **options)


@pytest.mark.parametrize("where", ["data", "validation"])
def test_a_wrong_label_in_the_last_sample_is_found_before_the_first_step(make, rng, where):
    model = make()
    before = weights(model)
    x, y = rng.normal(size=(1030, 4, 2)), rng.integers(0, 3, 1030)
    wrong = y.copy()
    wrong[-1] = 3
    parts = {"data": (x, y), "validation": (x, y)} | {where: (x, wrong)}
    with pytest.raises(ValueError, match=f"in {where}, y holds 3; expected whole numbers from 0"):
        fit(model, parts["data"], validation=parts["validation"], batch_size=1030)
    for name, value in model.parameters().items():
        np.testing.assert_array_equal(value, before[name])


def test_evaluate_finds_a_wrong_label_wherever_it_is(make, data):
    data[1][-1] = 3
    with pytest.raises(ValueError, match="in data, y holds 3; expected whole numbers from 0 to 2"):
        nf.evaluate(make(), data)


@pytest.mark.parametrize("where", ["data", "validation"])
def test_a_hole_in_the_padding_is_found_before_the_first_step_and_named_by_its_row(
    make, rng, where
):
    x, y = rng.normal(size=(1030, 4, 2)), rng.integers(0, 3, 1030)
    mask = np.arange(4) < rng.integers(1, 5, 1030)[:, None]
    holed = mask.copy()
    holed[1029] = [True, False, True, False]
    parts = {"data": (x, y, mask), "validation": (x, y, mask)} | {where: (x, y, holed)}
    model = make(mixer=["attention", "fourier"], padding="per_length")
    with pytest.raises(
        ValueError, match=f"in {where}, mask keeps tokens after padding in row 1029"
    ):
        fit(model, parts["data"], validation=parts["validation"])
    assert_same_weights(model, make(mixer=["attention", "fourier"], padding="per_length"))


# The progress bar ---------------------------------------------------------------------------------


def test_without_progress_nothing_is_printed(make, data, capsys):
    fit(make(), data, validation=data, progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_progress_bar_is_on_stderr_and_says_how_it_goes(make, data, capsys):
    history = fit(make(), data, validation=data, epochs=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4" in err
    assert f"loss={history.train_loss[-1]:.4f}" in err


@pytest.mark.parametrize("part", ["x", "y"])
def test_none_is_no_data(make, data, part):
    with pytest.raises(TypeError, match=rf"{part} in data is a NoneType; expected a NumPy array"):
        fit(make(), tuple(None if name == part else a for name, a in zip("xy", data, strict=False)))


@pytest.mark.parametrize(("workers", "copies"), [("auto", "auto"), (1, False), (2, False)])
def test_a_number_of_workers_holds_for_validation_too(
    make, data, validation, monkeypatch, workers, copies
):
    """Each copy would take a batch of its own."""
    asked, in_batches = [], nf.SequenceClassifier.in_batches

    def noted(self, *arguments, **options):
        asked.append(options["processes"])
        return in_batches(self, *arguments, **options)

    monkeypatch.setattr(nf.SequenceClassifier, "in_batches", noted)
    fit(make(), data, validation=validation, epochs=1, workers=workers)
    assert asked == [copies]


# evaluate -----------------------------------------------------------------------------------------


def by_hand(rows):
    """Return loss and accuracy, one (scores, label) after the other."""
    losses, hits = [], []
    for scores, label in rows:
        total = math.fsum(math.exp(score) for score in scores)
        losses.append(math.log(total) - scores[label])
        hits.append(max(range(len(scores)), key=lambda c: scores[c]) == label)
    return math.fsum(losses) / len(losses), sum(hits) / len(hits)


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_evaluate_is_what_is_reckoned_by_hand(small_model, token_batch, batch_size):
    ids, labels, mask = token_batch
    model = small_model()
    logits = model(ids, mask).tolist()
    loss, accuracy = by_hand(zip(logits, labels.tolist(), strict=True))
    found = nf.evaluate(model, (ids, labels, mask), batch_size)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert (found.accuracy, found.labels) == (accuracy, 8)


def test_evaluate_of_tokens_counts_only_those_with_a_label(small_model, token_batch, rng):
    ids, _, mask = token_batch
    model = small_model(pooling="none")
    labels = np.where(mask, rng.integers(0, 3, ids.shape), -1)
    rows = zip(model(ids, mask)[mask].tolist(), labels[mask].tolist(), strict=True)
    loss, accuracy = by_hand(list(rows))
    found = nf.evaluate(model, (ids, labels, mask))
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert (found.accuracy, found.labels) == (accuracy, mask.sum())


def test_evaluate_without_a_label_costs_nothing(small_model, token_batch):
    ids, _, mask = token_batch
    found = nf.evaluate(small_model(pooling="none"), (ids, np.full(ids.shape, -1), mask))
    assert (found.labels, f"{found.loss:.4f}", found.accuracy) == (0, "0.0000", 0.0)


def test_evaluate_of_a_single_logit_is_what_is_reckoned_by_hand(make, data):
    model = make(n_classes=2, output="sigmoid")
    z = model(data[0])[:, 0].tolist()
    loss, accuracy = by_hand(
        ([0.0, score], y) for score, y in zip(z, data[1].tolist(), strict=True)
    )
    found = nf.evaluate(model, data)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.accuracy == accuracy


@pytest.mark.parametrize(
    ("changes", "bias"),
    [({}, [200.0, 0.0, 0.0]), ({"n_classes": 2, "output": "sigmoid"}, [-200.0])],
)
def test_the_loss_of_a_mistake_made_with_certainty_has_no_ceiling(make, data, changes, bias):
    model = make(dtype="float32", **changes)  # whose smallest number is e^-103
    model.parameters()["classify.weight"][...] = 0.0
    model.parameters()["classify.bias"][...] = bias
    found = nf.evaluate(model, (data[0].astype("float32"), np.ones(20, dtype="int64")))
    assert found.loss == pytest.approx(200.0)
    assert found.accuracy == 0.0


def test_evaluate_does_not_change_the_model(make, data):
    model = make(dropout=0.5)
    before = weights(model)
    assert nf.evaluate(model, data) == nf.evaluate(model, data)
    for name, value in model.parameters().items():
        np.testing.assert_array_equal(value, before[name])
