"""Batches by length, in less padding, and updates of several: the same numbers."""

import numpy as np
import pytest

import npformer as nf
from tests.data.test_lengths import LENGTH, model_of, samples
from tests.training.common import EPOCHS, calling, fit


def gradients_of_a_training(model, data, **options):
    batches = []

    def note(state):
        batches.append((state.rows.copy(), {n: g.copy() for n, g in state.gradients.items()}))

    nf.fit(
        model,
        data,
        epochs=1,
        batch_size=8,
        lr=1e-300,
        callbacks=[calling("before_update", note)],
        progress=False,
        **options,
    )
    return batches


@pytest.mark.parametrize(
    "mixer",
    [
        "attention",
        "dense_synthesizer",
        "fourier",
        "linear",
    ],
)
@pytest.mark.parametrize(
    "pooling",
    [
        "mean",
        "none",
    ],
)
def test_a_step_has_the_gradients_of_all_the_padding(mixer, pooling):
    x, y, mask = samples(per_token=pooling == "none")
    model = model_of(mixer, pooling)
    for rows, gradients in gradients_of_a_training(model, (x, y, mask), workers=1):
        _, padded_gradients = model.loss_and_gradients(x[rows], y[rows], mask[rows])
        for name, expected in padded_gradients.items():
            gradient = gradients[name]
            np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "options", "cut"),
    [
        ({}, {}, True),
        ({}, {"batches": "by_length"}, True),
        ({}, {"batches": "cut"}, True),
        ({}, {"batches": "shuffled"}, False),
        ({"pooling": "flatten"}, {}, False),
        ({"mixer": "fourier", "padding": "zero"}, {}, False),
    ],
)
def test_fit_goes_by_length_if_it_can(changes, options, cut):
    lengths = []
    model = model_of(**changes)

    class Noting(nf.SequenceClassifier):
        def upload(self, batch, *arguments, **more):
            lengths.append(batch.inputs[0].length)
            return super().upload(batch, *arguments, **more)

    model.__class__ = Noting
    nf.fit(model, samples(100), epochs=1, batch_size=8, workers=1, progress=False, **options)
    assert (min(lengths) < LENGTH) == cut
    assert cut or set(lengths) == {LENGTH}


def test_what_cannot_be_is_said():
    x, y, mask = samples()
    with pytest.raises(ValueError, match="batches is 'sorted'"):
        nf.fit(model_of(), (x, y, mask), batches="sorted")
    with pytest.raises(ValueError, match="the amount of padding changes what this model computes"):
        nf.fit(model_of(pooling="flatten"), (x, y, mask), batches="by_length")


@pytest.mark.parametrize(("dropout", "workers"), [(0.0, 1), (0.3, 2)])
def test_k_batches_are_one_of_k_times_the_size(make, data, dropout, workers):
    one, other = make(dropout=dropout), make(dropout=dropout)
    schedule = nf.optim.cosine(6, warmup=1)
    history = fit(one, data, batch_size=3, accumulate=3, schedule=schedule, workers=workers)
    again = fit(other, data, batch_size=9, schedule=schedule, workers=workers)
    assert history.train_loss == pytest.approx(again.train_loss, rel=1e-9)
    assert history.lr == again.lr
    for name, value in other.parameters().items():
        np.testing.assert_allclose(one.parameters()[name], value, rtol=0, atol=1e-8, err_msg=name)


@pytest.fixture
def updates(make, data):
    """Return rows, step and learning rate of each update of 3 batches."""
    noted_updates = []

    def note(state):
        noted_updates.append((len(state.rows), state.step, state.optimizer.current_lr()))

    fit(
        make(),
        data,
        calling("before_update", note),
        batch_size=3,
        accumulate=3,
        schedule=lambda step: 1.0 / step,
    )
    return noted_updates


def test_the_rest_of_an_epoch_is_an_update(updates):
    assert [rows for rows, _, _ in updates] == [9, 9, 2] * EPOCHS


def test_steps_count_updates(updates):
    assert [step for _, step, _ in updates] == [*range(1, 3 * EPOCHS + 1)]


def test_the_schedule_counts_updates(updates):
    assert [lr for *_, lr in updates] == pytest.approx([1e-2 / step for _, step, _ in updates])


def test_no_more_than_a_batch_is_computed_at_a_time(make, data, monkeypatch):
    sizes = []
    forward = nf.Encoder.forward

    def noted(self, x, context):
        if context.training:
            sizes.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(nf.Encoder, "forward", noted)
    with nf.use_kernels(False):
        fit(make(), data, batch_size=4, accumulate=2, epochs=1, workers=1)
        assert sizes == [4] * 5
        sizes.clear()
        fit(make(), data, batch_size=4, accumulate=2, micro_batch=2, epochs=1, workers=1)
    assert sizes == [2] * 10


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", None])
def test_wrong_numbers_are_refused(make, data, wrong):
    with pytest.raises(ValueError, match=r"accumulate is .*; expected a whole number of at least"):
        fit(make(), data, accumulate=wrong)
