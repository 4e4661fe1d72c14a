"""Any model may be trained: some from outside, through all that `fit` can do."""

from types import MappingProxyType

import numpy as np
import pytest

import npformer as nf
from npformer.data import stored_samples
from tests.models.trainable.outside import MODELS, WORDS, Regressor, as_files, data_of
from tests.training.common import calling

EPOCHS, STEPS = 3, 5
USUAL = {"epochs": EPOCHS, "batch_size": 4, "progress": False, "workers": 1}

OF_CLASSES = ("next token", "tagger")
every = pytest.mark.parametrize("name", MODELS)
of_classes = pytest.mark.parametrize("name", OF_CLASSES)


def train(name, data=None, seed=0, changes=None, **options):
    model = MODELS[name](seed, **(changes or {}))
    # A gradient that is 0 but for rounding, that of the keys' bias, is not to become a step.
    settings = {"optimizer": nf.Adam(model.parameters(), lr=1e-2, eps=1e-3), **USUAL, **options}
    return model, nf.fit(model, data_of(name) if data is None else data, **settings)


def weights(model):
    return model.parameters().flat.copy()


def both(value):
    return value if isinstance(value, tuple) else (value,)


def target_mask(name, mask):
    """Return the mask of the tokens that have targets, for a model of `OF_CLASSES`."""
    return both(mask)[MODELS[name].targets_of]


@every
def test_its_gradients_are_right(name):
    x, _, mask = data_of(name, 3)
    assert nf.gradcheck(MODELS[name](), *both(x), mask=mask, max_entries=6, directions=3).passed


@pytest.fixture(scope="module", params=MODELS)
def learned(request):
    """Return a model's name, the trained model, and its history."""
    name = request.param
    validation = data_of(name, 20, seed=1)
    return name, *train(name, data_of(name, 60), validation=validation, epochs=12)


def test_it_learns(learned):
    _, _, history = learned
    assert history.train_loss[-1] < 0.6 * history.train_loss[0]
    assert history.validation_loss[-1] < history.validation_loss[0]


def test_it_is_evaluated_on_its_targets(learned):
    name, model, history = learned
    x, y, mask = data_of(name, 60)
    evaluation = nf.evaluate(model, (x, y, mask))
    predicted = model.predict(x, mask)
    if name in OF_CLASSES:
        has_target = target_mask(name, mask)
        assert evaluation.labels == has_target.sum()
        assert evaluation.accuracy == pytest.approx((predicted == y)[has_target].mean(), rel=1e-12)
        assert (evaluation.accuracy > 0.5, len(history.validation_accuracy)) == (True, 12)
    else:
        assert evaluation.labels == len(y)
        assert evaluation.loss == pytest.approx(((predicted - y) ** 2).mean(), rel=1e-12)
        assert (np.isnan(evaluation.accuracy), history.validation_accuracy) == (True, [])


@every
def test_stopped_at_any_step_it_goes_on_bit_for_bit(name, tmp_path):
    uninterrupted, history = train(name, changes={"dropout": 0.2}, validation=0.2)

    def stop(state):
        if state.step == at:
            state.stop()

    for at in (1, 4, 6):  # within the first epoch, at its end, and within the next
        options = {"changes": {"dropout": 0.2}, "validation": 0.2, "checkpoint": tmp_path / str(at)}
        train(name, callbacks=[calling("after_step", stop)], **options)
        model, resumed = train(name, resume=True, **options)
        np.testing.assert_array_equal(weights(model), weights(uninterrupted))
        for name_of_result in ("train_loss", "validation_loss", "validation_metric", "best_epoch"):
            assert getattr(resumed, name_of_result) == getattr(history, name_of_result)


@every
def test_two_workers_are_one(name):
    """With dropout, whose masks belong to the samples."""
    one, _ = train(name, changes={"dropout": 0.2})
    two, history = train(name, changes={"dropout": 0.2}, workers=2)
    assert set(history.workers) == {"2 threads"}
    np.testing.assert_allclose(weights(two), weights(one), rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize(
    "options",
    [
        {"micro_batch": 2},
        {"batch_size": 2, "accumulate": 2},
    ],
    ids=str,
)
def test_a_batch_in_parts_is_the_batch(name, options):
    model, _ = train(name, batches="shuffled")
    model_in_parts, _ = train(name, batches="shuffled", **options)
    np.testing.assert_allclose(weights(model_in_parts), weights(model), rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize(
    "shared", [{"workers": 2}, {"workers": 3}, {"micro_batch": 3}, {"workers": 2, "micro_batch": 1}]
)
def test_masks_of_dropout_are_the_same_however_a_batch_is_shared(name, shared):
    model = MODELS[name](dropout=0.3)
    x, y, mask = data_of(name, 9)
    loss, gradients = model.loss_and_gradients(x, y, mask, seed=4)
    again, of_shares = model.loss_and_gradients(x, y, mask, seed=4, **shared)
    assert again == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(of_shares.flat, gradients.flat, rtol=1e-12, atol=1e-13)
    assert model.loss_and_gradients(x, y, mask, seed=5)[0] != pytest.approx(loss, rel=1e-6)


@every
def test_batches_by_length_have_little_padding(name):
    rows_of_steps = []
    watch = calling("after_step", lambda state: rows_of_steps.append(state.rows))
    _, _, mask = data = data_of(name)
    train(name, data, batches="by_length", callbacks=[watch])
    lengths = sum(side_mask.sum(axis=1) for side_mask in both(mask))
    spread = np.mean([np.ptp(lengths[rows]) for rows in rows_of_steps])
    shuffled = np.random.default_rng(0).permutation(len(lengths)).reshape(-1, 4)
    assert spread < 0.6 * np.mean([np.ptp(lengths[rows]) for rows in shuffled])


@pytest.fixture(params=MODELS)
def short_batch(request):
    """Return a model, a batch of its shortest samples, and the batch without common padding."""
    name = request.param
    x, y, mask = data_of(name)
    model = MODELS[name]()
    lengths = sum(side_mask.sum(axis=1) for side_mask in both(mask))
    batch = model.check(x, y, mask, loss=model.loss).select(np.argsort(lengths)[:4])
    return model, batch, batch.cut()


def test_a_batch_of_short_samples_is_cut(short_batch):
    _, batch, cut = short_batch
    assert all(e.length < w.length for e, w in zip(cut.inputs, batch.inputs, strict=True))


def test_cutting_a_batch_changes_no_gradient(short_batch):
    model, *batches = short_batch

    def gradients(batch):
        collected = nf.Gradients(model)
        outputs, cache = model.forward(*batch.arrays(), batch.within(nf.Context(training=True)))
        _, loss_cache = model.loss.forward(outputs, *batch.targets())
        model.backward(model.loss.backward(1.0, loss_cache), cache, collected)
        return collected.flat

    expected, of_cut = (gradients(batch) for batch in batches)
    np.testing.assert_allclose(of_cut, expected, rtol=1e-12, atol=1e-13)


@every
def test_files_are_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_samples, "MOST_AT_ONCE", 3)
    x, y, mask = data_of(name)
    weight = np.linspace(0.5, 2.0, len(y))
    options = {"validation": 0.2, "batches": "by_length", "changes": {"dropout": 0.2}}
    model, history = train(name, (x, y, mask), sample_weight=weight, **options)
    *stored, of_samples = as_files(tmp_path, (x, y, mask, weight), parts=7)
    same, again = train(name, stored, sample_weight=of_samples, **options)
    np.testing.assert_array_equal(weights(same), weights(model))
    assert again.train_loss == history.train_loss
    evaluation, expected = nf.evaluate(same, stored), nf.evaluate(model, (x, y, mask))
    assert evaluation.labels == expected.labels
    assert evaluation.loss == pytest.approx(expected.loss, rel=1e-13)  # summed over pieces
    for kind in ("outputs", "probabilities", "labels") if name in OF_CLASSES else ("outputs",):
        written = nf.predict_to_file(
            tmp_path / f"{kind}.npy", model, stored[0], stored[2], kind=kind
        )
        outputs = model(*both(x), mask=mask)
        if kind != "outputs":
            p = model.loss.probabilities(outputs)
            outputs = p if kind == "probabilities" else outputs.argmax(axis=-1)
        np.testing.assert_allclose(written, outputs, rtol=1e-12, atol=1e-13)


@every
@pytest.mark.parametrize("how", ["one", "two", "files"])
def test_what_stands_at_padding_changes_nothing(name, how, tmp_path):
    x, y, mask = data_of(name)
    other = []
    for array, side_mask in zip(both(x), both(mask), strict=True):
        vectors = array.dtype.kind == "f"
        side_mask = side_mask[..., None] if vectors else side_mask
        other.append(np.where(side_mask, array, np.nan if vectors else WORDS - 1))
    of_tokens = MODELS[name].targets_of is not None
    targets = np.where(target_mask(name, mask), y, 0) if of_tokens else y
    changed = (tuple(other) if isinstance(x, tuple) else other[0]), targets, mask
    options = {"workers": 2} if how == "two" else {}
    expected, history = train(name, validation=0.2, **options)
    data = as_files(tmp_path, changed) if how == "files" else changed
    model, other_history = train(name, data, validation=0.2, **options)
    np.testing.assert_array_equal(weights(model), weights(expected))
    assert other_history.validation_loss == history.validation_loss


@every
def test_a_frozen_layer_keeps_its_weights(name):
    model = MODELS[name]().freeze("encoder.*")
    before = {n: p.value.copy() for n, p in model.frozen().items()}
    nf.fit(model, data_of(name), **USUAL)
    assert before
    for n, p in model.frozen().items():
        np.testing.assert_array_equal(p.value, before[n])


@every
def test_samples_of_weight_0_are_left_out(name):
    x, y, mask = data_of(name)
    model = MODELS[name]()
    is_counted = np.arange(len(y)) < 7
    loss, gradients = model.loss_and_gradients(x, y, mask, sample_weight=is_counted * 1.0)
    few = [tuple(e[:7] for e in v) if isinstance(v, tuple) else v[:7] for v in (x, y, mask)]
    expected, of_few = model.loss_and_gradients(*few)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradients.flat, of_few.flat, rtol=1e-10, atol=1e-13)


@every
def test_predictions_are_those_of_a_call(name):
    x, _, mask = data_of(name)
    model = MODELS[name]()
    outputs = model(*both(x), mask=mask)
    expected = outputs.argmax(axis=-1) if name in OF_CLASSES else outputs
    predictions = model.predict(x, mask, batch_size=3)
    np.testing.assert_allclose(predictions, expected, rtol=1e-12, atol=1e-13)


@every
def test_a_trace_has_the_outputs_of_a_call(name):
    x, _, mask = data_of(name)
    model = MODELS[name]()
    # Outputs at padding do not count.
    has_target = target_mask(name, mask) if name in OF_CLASSES else slice(None)
    output = nf.trace(model, x, mask)[0].output[has_target]
    expected = model(*both(x), mask=mask)[has_target]
    np.testing.assert_allclose(output, expected, rtol=1e-12, atol=1e-13)


@every
def test_a_summary_has_each_call_of_a_block(name):
    x, _, mask = data_of(name)
    summary = nf.summary(MODELS[name](), x, mask)
    assert summary.count("EncoderBlock") == (2 if name == "similarity" else 1)


@every
def test_each_call_of_a_block_is_explained(name):
    x, _, mask = data_of(name)
    assert len(MODELS[name]().explain(x, mask)) == (2 if name == "similarity" else 1)


def test_a_figure_of_ones_own_chooses_the_best_epoch():
    def closeness(found):
        return -found.total / found.divisor

    class Own(Regressor):
        figures = MappingProxyType({"closeness": closeness})

    history = nf.fit(Own(), data_of("regressor"), validation=0.2, metric="closeness", **USUAL)
    assert history.validation_metric == [-loss for loss in history.validation_loss]
    assert nf.evaluate(Own(), data_of("regressor")).others.keys() == {"closeness"}
    history = nf.fit(Own(), data_of("regressor"), validation=0.2, **USUAL)  # by the loss
    assert history.best_epoch == 1 + int(np.argmin(history.validation_loss))
    assert history.validation_metric == []


def test_types_belong_to_their_input():
    class Typed(MODELS["similarity"]):
        def side(self, x, context):
            return super().side(x * (1.0 + context.types[..., None]), context)

        def side_backward(self, dpooled, cache, gradients):
            super().side_backward(dpooled, cache, gradients)  # types have no part in dx here

    (a, b), y, masks = data_of("similarity")
    types = tuple(np.random.default_rng(k).integers(0, 2, of.shape) for k, of in enumerate(masks))
    scaled = tuple(x * (1.0 + of[..., None]) for x, of in zip((a, b), types, strict=True))
    expected, _ = train("similarity", (scaled, y, masks), batches="by_length")
    for shared in ({}, {"workers": 2}, {"micro_batch": 1}):
        model = Typed()
        optimizer = nf.Adam(model.parameters(), lr=1e-2, eps=1e-3)
        settings = {**USUAL, "optimizer": optimizer, "batches": "by_length", **shared}
        nf.fit(model, ((a, b), y, masks, types), **settings)
        np.testing.assert_allclose(weights(model), weights(expected), rtol=1e-12, atol=1e-12)


def test_a_checkpoint_of_ones_own_loop(tmp_path):
    model = Regressor()
    adam = nf.Adam(model.parameters(), lr=0.1)
    adam.step(model.loss_and_gradients(*data_of("regressor"))[1])
    nf.save_checkpoint(tmp_path, model, adam, notes={"epoch": 3})
    checkpoint = nf.load_checkpoint(tmp_path, model=Regressor(seed=5))
    np.testing.assert_array_equal(weights(checkpoint.model), weights(model))
    assert (checkpoint.optimizer.steps, checkpoint.notes) == (1, {"epoch": 3})
    with pytest.raises(nf.CheckpointError, match="it holds a Regressor"):
        nf.load_checkpoint(tmp_path)
    with pytest.raises(TypeError, match="model is a Regressor; expected an Encoder"):
        nf.save(model, tmp_path / "model.safetensors")
