"""Batches of a training, by length: the same numbers as with all the padding, in less of it."""

import numpy as np
import pytest

import npformer as nf
from tests.data.test_lengths import LENGTH, model_of, samples
from tests.in_turn import in_turn


def gradients_of_a_training(model, data, **options):
    found = []

    class Notes(nf.Callback):
        def before_update(self, state):
            found.append((state.rows.copy(), {n: g.copy() for n, g in state.gradients.items()}))

    usual = {"epochs": 1, "batch_size": 8, "lr": 1e-300, "progress": False}
    nf.fit(model, data, callbacks=[Notes()], **usual, **options)
    return found


@in_turn("mixer", ["attention", "dense_synthesizer", "fourier", "linear"])
@in_turn("pooling", ["mean", "none"])
def test_a_step_has_the_gradients_of_all_the_padding(mixer, pooling):
    x, y, mask = samples(per_token=pooling == "none")
    model = model_of(mixer, pooling)
    for rows, gradients in gradients_of_a_training(model, (x, y, mask), workers=1):
        _, whole = model.loss_and_gradients(x[rows], y[rows], mask[rows])
        for name, expected in whole.items():
            found = gradients[name]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "options", "cut"),
    [
        *(({}, {}, True), ({}, {"batches": "by_length"}, True), ({}, {"batches": "cut"}, True)),
        *(({}, {"batches": "shuffled"}, False), ({"pooling": "flatten"}, {}, False)),
        ({"mixer": "fourier", "padding": "zero"}, {}, False),
    ],
)
def test_fit_goes_by_length_if_it_can(changes, options, cut):
    seen, model = [], model_of(**changes)

    class Noting(nf.SequenceClassifier):
        def upload(self, batch, *arguments, **more):
            seen.append(batch.inputs[0].length)
            return super().upload(batch, *arguments, **more)

    model.__class__ = Noting
    settings = {"epochs": 1, "batch_size": 8, "progress": False, "workers": 1}
    nf.fit(model, samples(100), **settings, **options)
    assert (min(seen) < LENGTH) == cut
    assert cut or set(seen) == {LENGTH}


def test_what_cannot_be_is_said():
    x, y, mask = samples()
    with pytest.raises(ValueError, match="batches is 'sorted'"):
        nf.fit(model_of(), (x, y, mask), batches="sorted")
    with pytest.raises(ValueError, match="the amount of padding changes what this model computes"):
        nf.fit(model_of(pooling="flatten"), (x, y, mask), batches="by_length")
