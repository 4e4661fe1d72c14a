"""fit: what is learned, what is repeated bit for bit, and which weights are kept."""

import json
import math
import sys

import numpy as np
import pytest

import npformer as nf
from benchmarks.shape import run_by
from npformer.engine.team import Team
from npformer.optim import Adam, global_norm
from tests.training.common import EPOCHS, STEPS, assert_same_weights, assert_trained, calling, fit
from tests.training.distributed.fake_ranks import run_threads


# Learning -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "changes",
    [{"dtype": "float32"}, {"dtype": "float64"}, {"n_classes": 2, "output": "sigmoid"}],
    ids=str,
)
def test_the_loss_falls(make, data, changes):
    x, y = data
    model = make(**changes)
    data = x.astype(model.dtype), y
    history = fit(model, data, epochs=20)
    assert history.train_loss[-1] < 0.2 * history.train_loss[0]
    assert history.stopped == "finished"
    assert nf.evaluate(model, data).accuracy == 1.0


def test_what_is_not_asked_for_is_not_entered(make, data, tmp_path):
    def files_of(**options):
        fit(make(), data, epochs=1, **options)  # imports come before
        return run_by(lambda: fit(make(), data, epochs=1, **options)).files

    ranks = "training/distributed/", "training/ranks.py"
    ranks_and_storage = (
        "training/distributed/",
        "training/ranks.py",
        "training/storage/",
        "training/checkpoints.py",
    )
    files = files_of(validation=data, clip_norm=1.0, accumulate=2)
    assert {"training/loop.py", "training/watchers.py"} < files
    assert not [file for file in files if file.startswith(ranks_and_storage)]
    with_checkpoint = files_of(checkpoint=tmp_path, resume=True)
    assert "training/checkpoints.py" in with_checkpoint
    assert not [file for file in with_checkpoint if file.startswith(ranks)]


@pytest.fixture
def orders(make, data, monkeypatch):
    """Return the samples of two epochs, in the order of their steps."""
    samples = []
    step = Team.step
    x, y = data
    x[:, 0, 0] = np.arange(20)

    def note_samples(self, batch, *arguments, **options):
        samples.extend(batch.inputs[0].x[:, 0, 0])
        return step(self, batch, *arguments, **options)

    monkeypatch.setattr(Team, "step", note_samples)
    fit(make(), (x, y), epochs=2, batch_size=6)
    return samples[:20], samples[20:]


def test_an_epoch_sees_every_sample_once(orders):
    for samples in orders:
        assert sorted(samples) == list(range(20))


def test_each_epoch_has_another_order(orders):
    first, second = orders
    assert first != second


@pytest.fixture
def scheduled(make, data, validation):
    """Return the history, as a dict, of a training with a schedule."""

    def schedule(step):
        return np.float32(1.0 / step)

    return fit(make(), data, validation=validation, lr=1e-3, schedule=schedule).to_dict()


def test_history_has_an_entry_for_each_epoch(scheduled):
    for name in ("train_loss", "validation_loss", "validation_accuracy", "lr", "seconds"):
        assert len(scheduled[name]) == EPOCHS


def test_history_can_be_written_as_json(scheduled):
    assert json.loads(json.dumps(scheduled)) == scheduled


def test_history_has_the_learning_rate_at_the_end_of_each_epoch(scheduled):
    assert scheduled["lr"] == pytest.approx([1e-3 / 4, 1e-3 / 8, 1e-3 / 12])


def test_a_schedule_by_its_name_is_as_long_as_the_training(make, data):
    options = {"epochs": 3, "batch_size": 5, "accumulate": 2}  # 6 updates
    for named, total in (("cosine(warmup=2)", 6), ("cosine(warmup=2,total=9)", 9)):
        lr = fit(make(), data, schedule=named, **options).lr
        assert lr == fit(make(), data, schedule=nf.optim.cosine(total, warmup=2), **options).lr


@pytest.fixture
def smoothed(make, data):
    """Return the loss without and with smoothing, and the history of a training with it."""
    model = make()
    with_smoothing, _ = model.loss_and_gradients(*data, label_smoothing=0.3)
    without = nf.evaluate(model, data).loss
    history = fit(
        model,
        data,
        validation=data,
        epochs=1,
        batch_size=20,
        lr=1e-300,
        label_smoothing=0.3,
    )
    assert abs(with_smoothing - without) > 1e-3
    return without, with_smoothing, history


def test_label_smoothing_is_in_the_training_loss(smoothed):
    _, loss, history = smoothed
    assert history.train_loss[0] == pytest.approx(loss, rel=1e-12)


def test_label_smoothing_is_not_in_the_validation_loss(smoothed):
    loss, _, history = smoothed
    assert history.validation_loss[0] == pytest.approx(loss, rel=1e-12)


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
    assert optimizer.steps == EPOCHS * STEPS
    assert_same_weights(model, other)


def test_an_optimizer_that_is_given_again_goes_on_where_it_was(make, data):
    model = make()
    optimizer = Watched(model.parameters(), lr=1e-2)
    fit(model, data, optimizer=optimizer)
    fit(model, data, optimizer=optimizer)
    assert optimizer.steps == 2 * EPOCHS * STEPS


def test_an_optimizer_of_the_models_arrays_is_one_of_the_model(make, data):
    model, other = make(), make()
    fit(model, data, optimizer=Adam(dict(model.parameters()), lr=1e-2))
    fit(other, data, lr=1e-2)
    for name, value in other.parameters().items():
        np.testing.assert_allclose(model.parameters()[name], value, rtol=0, atol=1e-8, err_msg=name)


MASK = np.arange(4) < np.array([4, 2, 3, 1, 4] * 4)[:, None]


def fill_padding(x, value):
    """Return a copy of features with a value at padding."""
    filled = x.copy()
    filled[~MASK] = value
    return filled


def test_padding_may_hold_nan(make, data):
    x, y = data
    zeros, nans = (
        fit(make(pooling="mean"), (fill_padding(x, value), y, MASK)) for value in (0.0, math.nan)
    )
    assert zeros.train_loss == nans.train_loss


def test_nan_at_padding_is_never_named_as_the_cause(make, data):
    x, y = data
    with pytest.raises(nf.NonFiniteLossError, match=r"is (parameter|the output of) "):
        fit(make(pooling="mean"), (fill_padding(x, math.nan), y, MASK), lr=1e300)


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


@pytest.mark.parametrize(("dropout", "samples"), [(0.0, 20), (0.3, 20), (0.3, 1)])
def test_only_the_same_seed_gives_the_same_training(make, data, dropout, samples):
    """A single sample has only one order: there only the masks of dropout differ."""
    batch = tuple(array[:samples] for array in data)
    losses = [fit(make(dropout=dropout), batch, seed=seed).train_loss for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


def test_dropout_does_not_change_the_order_of_the_samples(make, data):
    orders = []
    note = calling("after_step", lambda state: orders[-1].extend(state.rows))
    for dropout, workers in ((0.0, 1), (0.3, 1), (0.3, 2)):
        orders.append([])
        fit(make(dropout=dropout), data, note, workers=workers)
    assert len(orders[0]) == EPOCHS * 20
    assert orders[1] == orders[2] == orders[0]


@pytest.mark.parametrize(("workers", "by"), [(1, "1 worker"), (2, "2 threads")])
def test_history_says_who_computed_the_steps(make, data, workers, by):
    x, y = data
    history = fit(make(), (x[:17], y[:17]), epochs=3, batch_size=4, workers=workers)
    assert history.workers == ({by: 15} if by == "1 worker" else {by: 12, "1 worker": 3})


@pytest.mark.parametrize("options", [{"masks": "device"}, {"check_every": 3}, {"check_every": 100}])
def test_options_of_a_gpu_change_nothing_on_a_cpu(make, data, options):
    losses = [fit(make(dropout=0.3), data, **changes).train_loss for changes in ({}, options)]
    assert losses[0] == losses[1]


# The best weights ---------------------------------------------------------------------------------
def spoiled_from(epoch):
    """Return a schedule under which training goes well, and from some epoch on wildly."""
    return lambda step: 1.0 if step <= STEPS * (epoch - 1) else 1000.0


def test_the_model_ends_with_the_weights_of_the_best_epoch(make, data, validation):
    model = make()
    history = fit(model, data, validation=validation, epochs=10, schedule=spoiled_from(8))
    best = history.best_epoch
    assert best < 8
    assert history.validation_accuracy[-1] < max(history.validation_accuracy)
    evaluation = nf.evaluate(model, validation)
    assert evaluation.accuracy == max(history.validation_accuracy)
    assert evaluation.loss == history.validation_loss[best - 1]
    assert_trained(model, make(), data, epochs=best)

    history = fit(make(), data)  # without validation data, the last weights stay
    assert history.best_epoch == EPOCHS
    assert history.validation_loss == history.validation_accuracy == []


def test_of_epochs_equally_accurate_the_lower_loss_is_better(make, data, monkeypatch):
    figures = iter([(0.5, 3.0), (0.9, 2.0), (0.9, 1.0), (0.9, 1.0), (0.8, 0.1)])

    def measure(*_, **__):
        return nf.Evaluation(*reversed(next(figures)), labels=1)

    monkeypatch.setattr(sys.modules["npformer.training.watchers"], "measure", measure)
    assert fit(make(), data, validation=data, epochs=5).best_epoch == 3


@pytest.mark.parametrize("patience", [1, 3])
def test_patience_stops_after_so_many_epochs_without_a_better_one(make, data, patience):
    history = fit(make(), data, validation=data, epochs=20, lr=1e-300, patience=patience)
    assert history.stopped == "patience"
    assert len(history.train_loss) == 1 + patience
    assert history.best_epoch == 1
    assert fit(make(), data, validation=data, lr=1e-4, patience=1).stopped == "finished"


# The progress bar ---------------------------------------------------------------------------------
def test_without_a_progress_bar_nothing_is_printed(make, data, capsys):
    fit(make(), data, validation=data, progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_progress_bar_on_stderr_shows_the_loss(make, data, capsys):
    history = fit(make(), data, validation=data, epochs=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4" in err
    assert f"loss={history.train_loss[-1]:.4f}" in err


def test_a_step_without_any_label_does_not_count_in_the_training_loss():
    config = nf.EncoderConfig(n_layers=1, d_model=8, n_heads=2, d_ff=8, max_len=4, dropout=0.0)
    x = np.arange(24).reshape(6, 4) % 5
    y = np.full((6, 4), -1)
    y[0, 1], y[0, 3] = 2, 0  # all labels are in one of three steps

    def trained(**settings):
        model = nf.SequenceClassifier(config, 3, vocab_size=5, pooling="none", seed=0)
        settings = {"epochs": 1, "batch_size": 2, "lr": 1e-300, "progress": False} | settings
        return nf.fit(model, (x, y), validation=(x, y), **settings)

    for settings in (
        {},
        {"micro_batch": 1},
        {"batch_size": 1, "accumulate": 2},
        {"check_every": 9},
    ):
        history = trained(**settings)
        assert history.train_loss == pytest.approx(history.validation_loss, rel=1e-6), settings
    with nf.use_kernels(False):
        history = trained()
    assert history.train_loss == pytest.approx(history.validation_loss, rel=1e-6)
    for history in run_threads(2, lambda ranks: trained(communicator=ranks)):
        assert history.train_loss == pytest.approx(history.validation_loss, rel=1e-6)
