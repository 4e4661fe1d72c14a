"""How often the host waits for the device, and what it uploads."""

from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import to_numpy
from npformer.engine.team import Team
from npformer.layers import POOLINGS
from tests.device.cases import (
    IDS,
    LABELS,
    LABELS_OF_TOKENS,
    MASK,
    batch,
    classifier,
    fit,
    on_device,
    one_step,
)
from tests.fake_device import FakeArray, count, waits
from tests.models.trainable.outside import Similarity, data_of


def training(**changes: Any) -> tuple[Team, nf.Adam]:
    model = classifier("float32", **changes).to("fake")
    loss = model.loss_with(label_smoothing=0.0 if model.output == "sigmoid" else 0.1)
    return Team(model, workers="auto", loss=loss), nf.Adam(model.parameters())


STEPS: list[dict[str, Any]] = [
    *({"mixer": mixer, "dropout": 0.1, "padding": "zero"} for mixer in nf.MIXERS),
    *({"pooling": pooling, "dropout": 0.1} for pooling in POOLINGS),
    *(
        {"mixer": mixer, "padding": "per_length"}
        for mixer in ("fourier", "hartley", "linear", "random")
    ),
    {"features": True},
    {"norm": "pre"},
    {"share_layers": True},
    {"ffn": "conv1d", "activation": "relu"},
    {"positions": "learned"},
    {"causal": True},
    {"memory": "blocks"},
    {"mixer": "mixture", "mixture": tuple(nf.mixers.SCORES)},
    {"output": "sigmoid"},
]


@pytest.mark.parametrize("changes", STEPS, ids=str)
def test_a_step_waits_for_nothing(changes) -> None:
    team, optimizer = training(**changes)
    with waits():
        one_step(team, optimizer)


PER_LENGTH = {"mixer": "fourier", "padding": "per_length"}


@pytest.mark.parametrize(
    ("changes", "mask", "n"),
    [
        (PER_LENGTH, lambda: None, 0),
        (PER_LENGTH | {"n_layers": 3}, lambda: on_device(MASK), 1),  # its lengths, once a step
    ],
)
def test_a_step_waits_for_the_lengths_of_a_mask_on_the_device_alone(changes, mask, n) -> None:
    team, optimizer = training(**changes)
    with waits(n):
        loss = one_step(team, optimizer, mask())
    with waits(1):
        float(loss)


@pytest.mark.parametrize(
    ("changes", "uploads"),
    [
        ({}, 3),  # ids, labels, mask
        ({"dropout": 0.1}, 3 + 1 + 2 * 2),  # and the mask of each dropout
        # and the rows of length 5 and of length 2, once for all layers
        (PER_LENGTH | {"n_layers": 3}, 3 + 2),
    ],
    ids=str,
)
def test_a_step_uploads_its_batch_and_what_the_host_draws_or_finds(changes, uploads) -> None:
    team, optimizer = training(**changes)
    with count() as counted:
        one_step(team, optimizer)
    assert counted.uploads == uploads


def test_a_batch_that_is_on_the_device_is_not_uploaded() -> None:
    model = classifier("float32").to("fake")
    x, y, mask = on_device(IDS), on_device(LABELS), on_device(MASK)
    team = Team(model)
    with count() as counted:
        team.step(model.batch(x, y, mask), generator=None)
    assert counted.uploads == 0


@pytest.mark.parametrize("changes", [{}, PER_LENGTH], ids=str)
def test_logits_stay_on_the_device(changes) -> None:
    model = classifier("float32", **changes).to("fake")
    with waits():
        assert isinstance(model(IDS, MASK), FakeArray)


def test_predictions_come_to_the_host_once_a_batch() -> None:
    model = classifier("float32").to("fake")
    with waits(2):
        assert isinstance(model.predict(IDS, MASK, batch_size=2), np.ndarray)


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_parts_of_a_batch_weigh_as_much_as_they_have_labels_on_the_device(micro_batch) -> None:
    model = classifier("float64", pooling="none").to("fake")
    arrays = on_device(IDS), on_device(LABELS_OF_TOKENS), on_device(MASK)
    loss, gradients = model.loss_and_gradients(*arrays)
    loss_of_parts, gradients_of_parts = model.loss_and_gradients(*arrays, micro_batch=micro_batch)
    assert loss_of_parts == pytest.approx(loss, rel=1e-12)
    for name, g in gradients.items():
        np.testing.assert_allclose(
            to_numpy(gradients_of_parts[name]), to_numpy(g), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("options", [{"epochs": 2}, {"epochs": 1, "check_every": 2}], ids=str)
@pytest.mark.parametrize("changes", [{}, PER_LENGTH], ids=str)
def test_fit_fetches_losses_once_an_epoch_or_every_so_many_steps(changes, options) -> None:
    model = classifier("float32", dropout=0.1, **changes).to("fake")
    with count() as counted:
        fit(
            model,
            (IDS, LABELS, MASK),
            batch_size=1,
            clip_norm=1.0,
            label_smoothing=0.1,
            weight_decay=0.1,
            **options,
        )
    # losses of each epoch, or after steps 2 and 3; at the end the weights of the last step, and the
    # loss that its batch has with them
    assert counted.waits == ["get()", "get()", "bool()", "get()"]


def test_of_callbacks_only_a_look_at_the_loss_waits() -> None:
    class Looking(nf.Callback):
        looks: int

        def after_step(self, state: nf.TrainingState) -> None:
            assert state.step == state.step_in_epoch == state.optimizer.steps
            assert len({state.loss for _ in range(self.looks)}) <= 1

    synchronisation_counts = []
    for looks in (0, 1, 2):
        callback, model = Looking(), classifier("float32").to("fake")
        callback.looks = looks
        with count() as counted:
            fit(model, (IDS, LABELS, MASK), epochs=1, batch_size=1, callbacks=[callback])
        synchronisation_counts.append(counted.synchronisations)
    steps = len(IDS)
    assert synchronisation_counts[1:] == [synchronisation_counts[0] + steps] * 2, (
        "once a step, however often it is looked at"
    )


def test_evaluation_fetches_probabilities_once_a_batch() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        nf.evaluate(model, (IDS, LABELS, MASK), batch_size=2)
    assert counted.waits == ["get()"] * 2


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
def test_evaluation_gives_the_numbers_of_numpy(output) -> None:
    evaluations = []
    for name in ("numpy", "fake"):
        model = classifier("float64", output=output).to(name)
        evaluations.append(nf.evaluate(model, (*batch(model), MASK)))
    assert evaluations[1].loss == pytest.approx(evaluations[0].loss, rel=1e-12)
    assert (evaluations[1].accuracy, evaluations[1].labels) == (
        evaluations[0].accuracy,
        evaluations[0].labels,
    )


def test_predictions_are_host_arrays_of_host_arrays() -> None:
    model = classifier("float32").to("fake")
    for x, mask in ((IDS, MASK), (on_device(IDS), on_device(MASK))):
        assert type(model.predict(x, mask)) is np.ndarray
        assert type(model.predict_probabilities(x, mask)) is np.ndarray


def test_a_summary_does_not_wait() -> None:
    model = classifier("float32").to("fake")
    with waits():
        assert "Attention" in nf.summary(model, on_device(IDS))


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_an_explanation_waits_for_nothing(mixer) -> None:
    model = classifier("float32", mixer=mixer, padding="zero").to("fake")
    ids, mask = on_device(IDS), on_device(MASK)
    with waits():
        nf.explain(model, ids, mask)


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_an_explanation_stays_on_the_device(mixer) -> None:
    model = classifier("float32", mixer=mixer, padding="zero").to("fake")
    explanations = nf.explain(model, on_device(IDS), on_device(MASK))
    assert all(isinstance(e.matrices, FakeArray) for e in explanations)
    assert len(explanations) == model.config.n_layers


@pytest.mark.parametrize("check_every", [1, 3])
def test_on_the_device_a_gradient_that_is_not_finite_shows_in_the_next_loss(check_every) -> None:
    """Nobody looks at gradients there; the weights become NaN, and the loss is read as usual."""

    class Poison(nf.Callback):
        def before_update(self, state: nf.TrainingState) -> None:
            if state.step == 1 and state.gradients is not None:
                state.gradients.flat[0] = float("nan")

    model = classifier("float32").to("fake")
    with pytest.raises(nf.NonFiniteLossError, match=r"at step 2; .* is parameter") as caught:
        fit(
            model,
            (IDS, LABELS),
            batch_size=1,
            epochs=1,
            check_every=check_every,
            callbacks=[Poison()],
        )
    assert ("1 updates later" in str(caught.value)) == (check_every > 1)


@pytest.mark.parametrize("check_every", [1, 3])
@pytest.mark.parametrize(("place", "name"), [(0, "a"), (1, "b")])
def test_nan_in_either_input_is_named_without_a_word_on_later(place, name, check_every) -> None:
    """It was in the data from the beginning, so nothing is to be learned from an earlier look."""
    inputs, y, masks = data_of("similarity")
    first = np.flatnonzero(masks[place][:, 0])  # the first token is kept in every sample
    inputs[place][first, 0, 0] = np.nan
    model = Similarity().to("fake")
    with pytest.raises(nf.NonFiniteLossError, match=f"is the input {name}. Samples") as caught:
        fit(model, (inputs, y, masks), batch_size=4, epochs=1, check_every=check_every)
    assert "later" not in str(caught.value)
