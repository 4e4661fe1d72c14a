"""The whole package on the strict fake device: what a GPU would refuse or wait for shows here."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import optim
from npformer.core import Padding
from npformer.engine.workers import Team
from npformer.inspection.non_finite import first_non_finite
from npformer.layers import POOLINGS
from npformer.mixers.padding import per_length, zero
from tests.device import cases
from tests.device.cases import IDS, LABELS, LABELS_OF_TOKENS, MASK, X, batch, classifier
from tests.fake_device import FakeArray, count


def on_device(x: np.ndarray) -> FakeArray:
    return nf.asarray(x, backend="fake")


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_allclose(
            nf.to_numpy(a[name]), nf.to_numpy(b[name]), rtol=1e-12, atol=1e-15, err_msg=name
        )


@pytest.fixture(autouse=True)
def plain():
    """The device has no kernels: NumPy's side computes with the same functions."""
    with nf.use_kernels(False):
        yield


# The same numbers as on NumPy


@cases.parametrised(cases.EVERYTHING)
def test_float64_gives_the_numbers_of_numpy(case) -> None:
    cases.assert_agree(case, "fake", "float64", tolerance=1e-12)


@cases.parametrised(cases.EVERYTHING)
def test_float32_stays_float32_and_gives_the_numbers_of_numpy(case) -> None:
    cases.assert_agree(case, "fake", "float32", tolerance=1e-6)


def test_every_pair_has_a_case() -> None:
    pairs = {name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward")}
    assert pairs - {case.covers for case in cases.PAIRS} == set(), "add a case to cases.PAIRS"


def test_every_layer_has_a_case() -> None:
    public = {name: getattr(nf.layers, name) for name in nf.layers.__all__}
    kinds = {n: x for n, x in public.items() if isinstance(x, type) and issubclass(x, nf.Layer)}
    layers = {n for n, x in kinds.items() if x.forward is not nf.Layer.forward}
    assert layers - {case.covers for case in cases.LAYERS} == set(), "add a case to cases.LAYERS"


def test_every_mixer_has_a_case() -> None:
    assert {case.covers for case in cases.MIXERS} == set(nf.MIXERS)


@cases.parametrised([*cases.PAIRS, *cases.LAYERS, *cases.ENCODERS])
def test_forward_and_backward_wait_for_nothing(case) -> None:
    with count() as counted:
        case.run("fake", "float32")
    assert counted.synchronisations == 0, counted.waits


# Synchronisations and uploads of a training step


def one_step(team: Team, optimizer: nf.Adam, mask: np.ndarray | None = MASK) -> FakeArray:
    given = team.model.batch(*batch(team.model), mask)
    loss, gradients = team.step(given, generator=np.random.default_rng(0))
    nf.clip_by_global_norm(gradients, 1.0)
    optimizer.step(gradients)
    return loss


def training(**changes: Any) -> tuple[Team, nf.Adam]:
    model = classifier("float32", **changes).to("fake")
    loss = model.loss_with(label_smoothing=0.1)
    return Team(model, workers="auto", loss=loss), nf.Adam(model.parameters())


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_step_waits_for_nothing(mixer, pooling) -> None:
    team, optimizer = training(mixer=mixer, pooling=pooling, dropout=0.1, padding="zero")
    with count() as counted:
        one_step(team, optimizer)
    assert counted.synchronisations == 0, counted.waits


@pytest.mark.parametrize(
    "changes",
    [
        {"features": True},
        {"norm": "pre"},
        {"share_layers": True},
        {"ffn": "conv1d", "activation": "relu"},
        {"positions": "learned"},
        {"causal": True},
        {"memory": "blocks"},
        {"mixer": "mixture", "mixture": tuple(nf.mixers.SCORES)},
    ],
    ids=str,
)
def test_a_step_of_another_model_waits_for_nothing(changes) -> None:
    team, optimizer = training(**changes)
    with count() as counted:
        one_step(team, optimizer)
    assert counted.synchronisations == 0, counted.waits


def test_a_step_with_one_logit_waits_for_nothing() -> None:
    model = classifier("float32", output="sigmoid").to("fake")
    with count() as counted:
        Team(model).step(model.batch(*batch(model), MASK), generator=None)
    assert counted.synchronisations == 0, counted.waits


def test_reading_the_loss_waits_once() -> None:
    team, optimizer = training()
    with count() as counted:
        float(one_step(team, optimizer))
    assert counted.synchronisations == 1, counted.waits


def test_transforming_each_length_by_itself_does_not_wait_without_padding() -> None:
    team, optimizer = training(mixer="fourier", padding="per_length")
    with count() as counted:
        one_step(team, optimizer, mask=None)
    assert counted.synchronisations == 0, counted.waits


def test_a_step_uploads_its_batch_and_nothing_else() -> None:
    team, optimizer = training()
    with count() as counted:
        one_step(team, optimizer)
    assert counted.uploads == 3  # ids, labels, mask


def test_each_dropout_uploads_the_mask_it_drew() -> None:
    team, optimizer = training(dropout=0.1)
    with count() as counted:
        one_step(team, optimizer)
    assert counted.uploads == 3 + 1 + 2 * team.model.config.n_layers


def test_a_batch_that_is_on_the_device_is_not_uploaded() -> None:
    model = classifier("float32").to("fake")
    x, y, mask = on_device(IDS), on_device(LABELS), on_device(MASK)
    team = Team(model)
    with count() as counted:
        team.step(model.batch(x, y, mask), generator=None)
    assert counted.uploads == 0


def test_logits_stay_on_the_device() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        logits = model(IDS, MASK)
    assert isinstance(logits, FakeArray)
    assert counted.synchronisations == 0, counted.waits


def test_predictions_come_to_the_host_once_a_batch() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        labels = model.predict(IDS, MASK, batch_size=2)
    assert isinstance(labels, np.ndarray)
    assert counted.synchronisations == 2, counted.waits


def test_fit_reads_its_losses_once_an_epoch() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        nf.fit(model, (IDS, LABELS, MASK), epochs=2, batch_size=1, progress=False)
    # and once, at the end, the weights that the last step left
    assert counted.waits == ["get()", "get()", "bool()"]


def test_fit_gives_the_history_and_the_model_of_numpy() -> None:
    histories, models = [], []
    for name in ("numpy", "fake"):
        model = classifier("float64", dropout=0.2).to(name)
        history = nf.fit(
            model,
            (IDS, LABELS, MASK),
            validation=(IDS, LABELS),
            epochs=2,
            batch_size=2,
            clip_norm=1.0,
            progress=False,
        )
        histories.append({"train": history.train_loss, "validation": history.validation_loss})
        models.append(model.parameters())
    same(histories[0], histories[1])
    same(models[0], models[1])


# Moving


def test_a_model_that_moves_there_and_back_is_the_same() -> None:
    model = classifier("float32")
    before = {name: x.copy() for name, x in model.parameters().items()}
    model.to("fake").to("numpy")
    for name, x in model.parameters().items():
        np.testing.assert_array_equal(x, before[name])
        assert x.flags.writeable


def test_parameters_are_views_of_one_buffer_after_a_move() -> None:
    model = classifier("float32").to("fake")
    model.parameters().flat[...] = 0.5
    assert all((nf.to_numpy(x) == 0.5).all() for x in model.parameters().values())


def test_parameters_that_were_taken_before_the_move_show_the_device() -> None:
    model = classifier("float32")
    parameters = model.parameters()
    model.to("fake")
    assert all(isinstance(x, FakeArray) for x in parameters.values())


def test_constants_move_with_the_model() -> None:
    model = classifier("float32").to("fake")
    assert isinstance(model.embed.positions.table.value, FakeArray)


@pytest.mark.parametrize("mixer", ["fixed_random_synthesizer", "random"])
def test_tables_that_are_not_trained_move_with_the_model(mixer) -> None:
    model = classifier("float32", mixer=mixer)
    tables = {n: p for n, p in model.named_parameters().items() if not p.trainable}
    assert any("mixer" in name for name in tables)
    before = {name: p.value.copy() for name, p in tables.items()}
    model.to("fake")
    assert all(isinstance(p.value, FakeArray) for p in tables.values())
    model.to("numpy")
    for name, p in tables.items():
        np.testing.assert_array_equal(p.value, before[name])


def test_the_model_on_the_device_has_memory_of_its_own() -> None:
    model = classifier("float32")
    host = model.parameters().flat
    model.to("fake")
    host[...] = 7.0
    assert not (nf.to_numpy(model.parameters().flat) == 7.0).any()


def test_moving_to_where_it_is_does_nothing() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        model.to("fake")
    assert (counted.uploads, counted.synchronisations) == (0, 0)


@pytest.mark.parametrize("way", [{2: "fake"}, {2: "fake", 4: "numpy"}], ids=["there", "and back"])
def test_training_continues_where_the_model_moves(way) -> None:
    stayed = cases.train("numpy", "float64", steps=6)
    same(cases.train("numpy", "float64", steps=6, moves=way), stayed)


def test_adam_that_was_made_before_the_move_continues() -> None:
    results = []
    for moves in (False, True):
        model = classifier("float64")
        optimizer = nf.Adam(model.parameters(), lr=0.01)
        for step in range(4):
            if moves and step == 2:
                model.to("fake")
            _, gradients = model.loss_and_gradients(IDS, LABELS)
            optimizer.step(gradients)
        results.append(model.parameters())
    same(*results)


def test_a_copy_of_a_model_stays_on_the_device() -> None:
    model = classifier("float32").to("fake")
    twin = copy.deepcopy(model)
    twin.parameters().flat[...] = 0.0
    assert twin.backend == "fake"
    assert (nf.to_numpy(model.parameters().flat) != 0.0).any()


def test_what_is_saved_on_the_device_loads_on_the_host(tmp_path) -> None:
    model = classifier("float32").to("fake")
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    same(loaded.parameters(), model.parameters())


def test_a_file_loads_onto_the_device(tmp_path) -> None:
    nf.save(classifier("float32"), tmp_path / "model.safetensors")
    assert nf.load(tmp_path / "model.safetensors", backend="fake").backend == "fake"


# Looking inside


def test_a_summary_does_not_wait() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        assert "Attention" in nf.summary(model, on_device(IDS))
    assert counted.synchronisations == 0, counted.waits


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_an_explanation_does_not_wait_and_stays_on_the_device(mixer) -> None:
    model = classifier("float32", mixer=mixer, padding="zero").to("fake")
    ids, mask = on_device(IDS), on_device(MASK)
    with count() as counted:
        explanations = nf.explain(model, ids, mask)
    assert all(isinstance(e.matrices, FakeArray) for e in explanations)
    assert len(explanations) == model.config.n_layers
    assert counted.synchronisations == 0, counted.waits


def test_explain_uploads_what_comes_from_the_host() -> None:
    model = classifier("float64").to("fake")
    here, there = classifier("float64").explain(IDS, MASK), model.explain(IDS, MASK)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(nf.to_numpy(other.matrices), one.matrices, rtol=1e-12)


def test_the_first_tensor_that_is_not_finite_is_found() -> None:
    model = classifier("float32").to("fake")
    model.parameters()["encoder.blocks.1.mixer.value.bias"][...] = float("nan")
    found = first_non_finite(model, on_device(IDS))
    assert found == "parameter encoder.blocks.1.mixer.value.bias"


# Seeds


def test_a_seed_means_the_same_weights() -> None:
    same(classifier("float64").to("fake").parameters(), classifier("float64").parameters())


def test_a_seed_means_the_same_dropout() -> None:
    here = F.dropout(X, 0.5, np.random.default_rng(3))[0]
    there = F.dropout(on_device(X), 0.5, np.random.default_rng(3))[0]
    np.testing.assert_array_equal(nf.to_numpy(there), here)


def test_dropout_takes_a_generator_of_the_device() -> None:
    class DeviceGenerator:
        def random(self, shape: tuple[int, ...], dtype: str) -> FakeArray:
            return on_device(np.random.default_rng(3).random(shape, dtype=dtype))

    kept = np.random.default_rng(3).random(X.shape, dtype="float32") >= 0.5
    there = F.dropout(on_device(X), 0.5, DeviceGenerator())[0]
    np.testing.assert_array_equal(nf.to_numpy(there), X * kept * 2.0)


# The model's edge


@pytest.mark.parametrize("part", ["x", "y", "mask"])
def test_each_part_of_a_batch_may_be_on_the_device(part) -> None:
    model = classifier("float64").to("fake")
    given = {"x": IDS, "y": LABELS, "mask": MASK}
    loss, gradients = model.loss_and_gradients(**given)
    given[part] = on_device(given[part])
    loss_there, gradients_there = model.loss_and_gradients(**given)
    assert loss_there == loss
    same(gradients_there, gradients)


def test_labels_on_the_device_may_be_missing() -> None:
    model = classifier("float64", pooling="none").to("fake")
    loss, _ = model.loss_and_gradients(IDS, LABELS_OF_TOKENS)
    assert model.loss_and_gradients(IDS, on_device(LABELS_OF_TOKENS))[0] == loss


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
def test_labels_on_the_device_are_whole_numbers(output) -> None:
    model = classifier("float32", output=output).to("fake")
    labels = on_device(np.array([0.0, 1.0, 0.5], dtype="float32"))
    with pytest.raises(TypeError, match=r"y has dtype float32; expected whole numbers"):
        model.loss_and_gradients(IDS, labels)


def test_a_label_out_of_range_is_found_before_the_upload() -> None:
    model = classifier("float32").to("fake")
    with pytest.raises(ValueError, match="y holds 9"):
        model.loss_and_gradients(IDS, np.array([0, 9, 1]))


def test_an_id_out_of_range_is_found_before_the_upload() -> None:
    model = classifier("float32").to("fake")
    with pytest.raises(ValueError, match="x holds 7"):
        model(IDS + 1)


@pytest.mark.parametrize("part", ["x", "y", "mask"])
def test_a_model_on_the_host_does_not_fetch_a_device_array(part) -> None:
    given = {"x": IDS, "y": LABELS, "mask": MASK}
    given[part] = on_device(given[part])
    with pytest.raises(TypeError, match=rf"{part} is a fake array and the model is on numpy"):
        classifier("float32").loss_and_gradients(**given)


def test_workers_are_refused_on_the_device() -> None:
    model = classifier("float32").to("fake")
    with pytest.raises(ValueError, match="workers are CPU threads"):
        model.loss_and_gradients(IDS, LABELS, workers=2)


def test_a_part_of_a_model_does_not_move_alone() -> None:
    model = classifier("float32")
    with pytest.raises(ValueError, match=r"move the whole model: model\.to\('fake'\)"):
        model.encoder.to("fake")
    assert model.encoder.backend == model.backend == "numpy"


# Mixing backends

HEADS = MASK[:, None, None, :]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, there: F.linear(there, np.ones((8, 4))),
        lambda x, there: F.layer_norm(x, on_device(np.ones(8)), on_device(np.ones(8))),
        lambda x, there: F.softmax(there, mask=MASK[..., None]),
        lambda x, there: F.mean_pooling(there, mask=MASK),
        lambda x, there: F.attention_scores(there, x),
        lambda x, there: F.average(there, on_device(np.ones((3, 8, 2))), MASK[:, :, None]),
        lambda x, there: F.average(there, np.ones((3, 8, 2))),
        lambda x, there: F.averaging_weights(there, mask=MASK[:, :, None]),
        lambda x, there: F.averaging_weights(there, mask=MASK[:, :, None], causal=True),
        lambda x, there: F.scaled_dot_product_attention(*[there] * 3, mask=MASK[:, None, :]),
        lambda x, there: F.scaled_dot_product_attention(there, there, x),
        lambda x, there: F.blockwise_attention(*[there] * 3, mask=MASK[:, None, :]),
        lambda x, there: F.blockwise_attention(there, there, x),
        lambda x, there: F.dense_synthesizer(
            *[there] * 2,
            *[on_device(np.ones(s)) for s in ((8, 8), 8, (8, 5), 5)],
            MASK[:, None, :],
            True,
        ),
        lambda x, there: F.dense_scores(
            there, *[np.ones(s) for s in ((8, 8), 8, (8, 5), 5)], columns=5
        ),
        lambda x, there: F.random_synthesizer(there, np.ones((5, 5))),
        lambda x, there: F.factorized_random_synthesizer(
            there, on_device(np.ones((5, 2))), np.ones((5, 2))
        ),
        lambda x, there: F.mixture_scores(on_device(np.ones(2)), there, x),
        lambda x, there: F.linear_mixing(there, np.ones((5, 5)), np.ones((8, 8))),
        lambda x, there: F.embedding(IDS, there[0]),
        lambda x, there: F.softmax_cross_entropy(there[:, 0], LABELS),
        lambda x, there: nf.layers.Linear(8, 4, seed=0, dtype="float64").to("fake")(x),
        lambda x, there: nf.layers.Flatten()(there, MASK),
        lambda x, there: zero(F.fourier_mixing, there, Padding(MASK), "fourier"),
        lambda x, there: per_length(F.fourier_mixing, there, Padding(MASK), "fourier"),
        lambda x, there: nf.Encoder(cases.config(), dtype="float64").to("fake")(there, MASK),
        lambda x, there: nf.Encoder(cases.config(), dtype="float64")(x, on_device(MASK)),
    ],
)
def test_mixed_backends_are_an_error_that_says_what_to_do(mix) -> None:
    expected = (
        r"[\w\[\]]+ is a (fake|numpy) array and \S+ is a (fake|numpy) array; .*npformer\.asarray\("
    )
    with pytest.raises(TypeError, match=expected):
        mix(X, on_device(X))


def test_adam_names_both_sides_when_only_the_model_moved() -> None:
    model = classifier("float32")
    optimizer = nf.Adam(model.parameters())
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    model.to("fake")
    with pytest.raises(TypeError, match="parameters is a fake array and gradients is a numpy"):
        optimizer.step(gradients)


# NumPy's numbers as options: they come from numpy.linspace and friends


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, v: F.dropout(x, v, np.random.default_rng(0))[0],
        lambda x, v: F.layer_norm(x, x[0, 0], x[0, 0], eps=v)[0],
        lambda x, v: F.softmax_cross_entropy(x[:, 0], nf.asarray(LABELS, "fake"), v)[0],
    ],
)
def test_a_numpy_number_as_an_option_leaves_float32(compute) -> None:
    y = compute(on_device(X.astype("float32")), np.float64(0.25))
    assert y.dtype == "float32"


@pytest.mark.parametrize(
    "options",
    [
        {"lr": np.float64(0.1)},
        {"betas": (np.float64(0.9), np.float64(0.99))},
        {"eps": np.float64(1e-8)},
        {"weight_decay": np.float64(0.1)},
        {"schedule": lambda step: np.float64(0.5)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_adam_takes_numpy_numbers(options) -> None:
    model = classifier("float32").to("fake")
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    nf.Adam(model.parameters(), **options).step(gradients)
    assert model.dtype == "float32"


def test_clipping_takes_a_numpy_number() -> None:
    model = classifier("float32").to("fake")
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    assert optim.clip_by_global_norm(gradients, np.float64(0.1)).dtype == "float32"


def test_a_model_built_with_numpy_numbers_trains_on_the_device() -> None:
    model = classifier("float32", dropout=np.float64(0.1), norm_eps=np.float64(1e-5)).to("fake")
    model.loss_and_gradients(IDS, LABELS, label_smoothing=np.float64(0.1), seed=0)
