"""How often the host waits for the device: once a look at losses, once a batch of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import to_numpy
from npformer.engine.workers import Team
from tests.device.cases import IDS, LABELS, LABELS_OF_TOKENS, MASK, batch, classifier
from tests.fake_device import asarray, count


def fit(model: nf.SequenceClassifier, data: Any, **options: Any) -> nf.History:
    usual = {"epochs": 2, "batch_size": 2, "progress": False}
    return nf.fit(model, data, **(usual | options))


@pytest.mark.parametrize("mixer", ["fourier", "hartley", "linear", "random"])
def test_a_step_waits_for_no_lengths(mixer) -> None:
    model = classifier("float32", mixer=mixer, padding="per_length").to("fake")
    with count() as counted:
        Team(model).step(model.batch(*batch(model), MASK), generator=None)
    assert counted.synchronisations == 0, counted.waits


def test_a_mask_on_the_device_is_asked_for_lengths_once_a_step() -> None:
    model = classifier("float32", mixer="fourier", padding="per_length", n_layers=3).to("fake")
    with count() as counted:
        Team(model).step(model.batch(*batch(model), asarray(MASK)), generator=None)
    assert counted.synchronisations == 1, counted.waits


def test_rows_of_each_length_are_uploaded_once_for_all_layers() -> None:
    model = classifier("float32", mixer="fourier", padding="per_length", n_layers=3).to("fake")
    with count() as counted:
        Team(model).step(model.batch(*batch(model), MASK), generator=None)
    assert counted.uploads == 3 + 2  # ids, labels, mask; rows of length 5 and of length 2


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_parts_of_a_batch_weigh_as_much_as_they_have_labels_on_the_device(micro_batch) -> None:
    model = classifier("float64", pooling="none").to("fake")
    given = asarray(IDS), asarray(LABELS_OF_TOKENS), asarray(MASK)
    loss, gradients = model.loss_and_gradients(*given)
    in_parts, sums = model.loss_and_gradients(*given, micro_batch=micro_batch)
    assert in_parts == pytest.approx(loss, rel=1e-12)
    for name, g in gradients.items():
        np.testing.assert_allclose(to_numpy(sums[name]), to_numpy(g), rtol=0, atol=1e-12)


def test_logits_of_padded_sequences_wait_for_nothing() -> None:
    model = classifier("float32", mixer="fourier", padding="per_length").to("fake")
    with count() as counted:
        model(IDS, MASK)
    assert counted.synchronisations == 0, counted.waits


@pytest.mark.parametrize("changes", [{}, {"mixer": "fourier", "padding": "per_length"}], ids=str)
def test_fit_fetches_the_losses_every_so_many_steps_and_nothing_else(changes) -> None:
    model = classifier("float32", dropout=0.1, **changes).to("fake")
    options = {"batch_size": 1, "clip_norm": 1.0, "label_smoothing": 0.1, "weight_decay": 0.1}
    with count() as counted:
        fit(model, (IDS, LABELS, MASK), epochs=1, check_every=2, **options)
    # losses after steps 2 and 3, and once the weights that the last step left
    assert counted.waits == ["get()", "get()", "bool()"]


def test_of_callbacks_only_a_look_at_the_loss_waits() -> None:
    class Looking(nf.Callback):
        looks: int

        def after_step(self, state: nf.TrainingState) -> None:
            assert state.step == state.step_in_epoch == state.optimizer.steps
            assert len({state.loss for _ in range(self.looks)}) <= 1

    waits = []
    for looks in (0, 1, 2):
        callback, model = Looking(), classifier("float32").to("fake")
        callback.looks = looks
        with count() as counted:
            fit(model, (IDS, LABELS, MASK), epochs=1, batch_size=1, callbacks=[callback])
        waits.append(counted.synchronisations)
    steps = len(IDS)
    assert waits[1:] == [waits[0] + steps] * 2, "once a step, however often it is looked at"


def test_evaluation_fetches_probabilities_once_a_batch() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        nf.evaluate(model, (IDS, LABELS, MASK), batch_size=2)
    assert counted.waits == ["get()"] * 2


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
def test_evaluation_gives_the_numbers_of_numpy(output) -> None:
    found = []
    for name in ("numpy", "fake"):
        model = classifier("float64", output=output).to(name)
        found.append(nf.evaluate(model, (*batch(model), MASK)))
    assert found[1].loss == pytest.approx(found[0].loss, rel=1e-12)
    assert (found[1].accuracy, found[1].labels) == (found[0].accuracy, found[0].labels)


def test_predictions_are_host_arrays_of_host_arrays() -> None:
    model = classifier("float32").to("fake")
    for x, mask in ((IDS, MASK), (asarray(IDS), asarray(MASK))):
        assert type(model.predict(x, mask)) is np.ndarray
        assert type(model.predict_probabilities(x, mask)) is np.ndarray
