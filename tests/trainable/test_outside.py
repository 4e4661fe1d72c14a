"""Any model may be trained: three from outside, through all that `fit` can do."""

import inspect
from types import MappingProxyType

import numpy as np
import pytest

import npformer as nf
from npformer.losses import MeanSquaredError, SoftmaxCrossEntropy
from tests.trainable.outside import FEATURES, LENGTH, MODELS, WORDS, Regressor, data_of

EPOCHS, STEPS = 3, 5
USUAL = {"epochs": EPOCHS, "batch_size": 4, "progress": False, "workers": 1}

every = pytest.mark.parametrize("name", MODELS)


def trained(name, data=None, seed=0, changes=None, **options):
    """Return a model after its training, and the history."""
    model = MODELS[name](seed, **(changes or {}))
    # A gradient that is 0 but for rounding, that of the keys' bias, is not to become a step.
    optimizer = nf.Adam(model.parameters(), lr=1e-2, eps=1e-3)
    given = {"optimizer": optimizer, **USUAL, **options}
    return model, nf.fit(model, data_of(name) if data is None else data, **given)


def weights(model):
    return model.parameters().flat.copy()


def as_files(folder, data):
    """Return the same data, memory-mapped."""
    n = 0

    def mapped(array):
        nonlocal n
        if array is None:
            return None
        if isinstance(array, tuple):
            return tuple(map(mapped, array))
        n += 1
        np.save(folder / f"{n}.npy", array)
        return np.load(folder / f"{n}.npy", mmap_mode="r")

    return tuple(map(mapped, data))


@every
def test_a_model_takes_less_than_sixty_lines(name):
    lines = inspect.getsource(MODELS[name]).splitlines()
    assert len([line for line in lines if line.strip()]) < 60


@every
def test_its_gradients_are_right(name):
    x, _, mask = data_of(name, 3)
    inputs = x if isinstance(x, tuple) else (x,)
    nf.gradcheck(MODELS[name](), *inputs, mask=mask)


@every
def test_it_learns_and_is_evaluated(name):
    data = data_of(name, 80)
    model, history = trained(name, data, validation=data_of(name, 40, seed=1), epochs=12)
    assert history.train_loss[-1] < 0.6 * history.train_loss[0]
    assert history.validation_loss[-1] < history.validation_loss[0]
    found = nf.evaluate(model, data)
    _, y, _ = data
    assert np.isnan(found.accuracy) == (name != "next token")
    assert found.labels == (data[2].sum() if name == "next token" else len(y))
    value = sum(history.validation_accuracy) if name == "next token" else 0.0
    assert (value > 0.0) == (name == "next token")


@every
def test_stopped_at_any_step_it_goes_on_bit_for_bit(name, tmp_path):
    whole, history = trained(name, changes={"dropout": 0.2}, validation=0.2)
    n_steps = len(range(0, 16, 4))

    class Stop(nf.Callback):
        def after_step(self, state):
            if state.step == at:
                state.stop()

    for at in range(1, EPOCHS * n_steps):
        given = {"changes": {"dropout": 0.2}, "validation": 0.2, "checkpoint": tmp_path / str(at)}
        trained(name, callbacks=[Stop()], **given)
        model, resumed = trained(name, resume=True, **given)
        np.testing.assert_array_equal(weights(model), weights(whole))
        for part in ("train_loss", "validation_loss", "validation_metric", "best_epoch"):
            assert getattr(resumed, part) == getattr(history, part)


@every
@pytest.mark.parametrize("how", [{"processes": False}, {"processes": True}], ids=str)
def test_two_workers_are_one(name, how):
    """Threads, and copies of the process; with dropout, whose masks belong to the samples."""
    one, _ = trained(name, changes={"dropout": 0.2})
    two, history = trained(name, changes={"dropout": 0.2}, workers=2, **how)
    assert set(history.workers) == {"2 processes" if how["processes"] else "2 threads"}
    np.testing.assert_allclose(weights(two), weights(one), rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize(
    "options", [{"micro_batch": 2}, {"batch_size": 2, "accumulate": 2}], ids=str
)
def test_a_batch_in_parts_is_the_batch(name, options):
    whole, _ = trained(name, batches="shuffled")
    parts, _ = trained(name, batches="shuffled", **options)
    np.testing.assert_allclose(weights(parts), weights(whole), rtol=1e-12, atol=1e-12)


@every
def test_batches_by_length_are_cut_and_change_no_gradient(name):
    seen = []

    class Watch(nf.Callback):
        def after_step(self, state):
            seen.append(state.rows)

    x, y, mask = data = data_of(name)
    trained(name, data, batches="by_length", callbacks=[Watch()])
    several = mask if isinstance(mask, tuple) else (mask,)
    lengths = sum(each.sum(axis=1) for each in several)
    spread = np.mean([np.ptp(lengths[rows]) for rows in seen])
    shuffled = np.random.default_rng(0).permutation(len(lengths)).reshape(-1, 4)
    assert spread < 0.6 * np.mean([np.ptp(lengths[rows]) for rows in shuffled])
    model = MODELS[name]()
    rows = np.argsort(lengths)[:4]
    checked = model.check(x, y, mask, loss=model.loss).of_rows(rows)
    cut = checked.cut()
    assert all(e.length < w.length for e, w in zip(cut.inputs, checked.inputs, strict=True))

    def gradients(batch):
        found = nf.Gradients(model)
        outputs, cache = model.forward(*batch.arrays(), batch.within(nf.Context(training=True)))
        _, loss_cache = model.loss.forward(outputs, *batch.targets())
        model.backward(model.loss.backward(1.0, loss_cache), cache, found)
        return found.flat

    np.testing.assert_allclose(gradients(cut), gradients(checked), rtol=1e-12, atol=1e-13)


@every
def test_files_are_memory(name, tmp_path):
    x, y, mask = data_of(name)
    weight = np.linspace(0.5, 2.0, len(y))
    options = {"validation": 0.2, "sample_weight": weight, "batches": "by_length"}
    model, history = trained(name, (x, y, mask), **options)
    stored = as_files(tmp_path, (x, y, mask))
    same, again = trained(name, stored, **options)
    np.testing.assert_array_equal(weights(same), weights(model))
    assert again.validation_loss == history.validation_loss
    assert nf.evaluate(same, stored) == nf.evaluate(model, (x, y, mask))
    written = nf.predict_to_file(tmp_path / "p.npy", model, stored[0], stored[2], kind="outputs")
    inputs, several = (v if isinstance(v, tuple) else (v,) for v in (x, mask))
    given = mask if len(several) == 2 else several[0]
    np.testing.assert_allclose(written, model(*inputs, mask=given), rtol=1e-12, atol=1e-13)


@every
def test_a_frozen_layer_stays_and_weights_of_samples_count(name):
    model = MODELS[name]().freeze("encoder.*")
    before = {n: p.value.copy() for n, p in model.frozen().items()}
    nf.fit(model, data_of(name), **USUAL)
    assert before
    for n, p in model.frozen().items():
        np.testing.assert_array_equal(p.value, before[n])
    x, y, mask = data_of(name)
    model, some = MODELS[name](), np.arange(len(y)) < 7
    loss, gradients = model.loss_and_gradients(x, y, mask, sample_weight=some * 1.0)
    few = [tuple(e[:7] for e in v) if isinstance(v, tuple) else v[:7] for v in (x, y, mask)]
    expected, of_few = model.loss_and_gradients(*few)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradients.flat, of_few.flat, rtol=1e-10, atol=1e-13)


@every
def test_predictions_traces_and_summaries(name):
    x, _, mask = data_of(name)
    model = MODELS[name]()
    inputs = x if isinstance(x, tuple) else (x,)
    outputs = model(*inputs, mask=mask)
    found = model.predict(x, mask, batch_size=3)
    expected = outputs.argmax(axis=-1) if name == "next token" else outputs
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    trace = nf.trace(model, x, mask)
    kept = mask if name == "next token" else slice(None)  # what stands at padding does not count
    np.testing.assert_allclose(trace[0].output[kept], outputs[kept], rtol=1e-12, atol=1e-13)
    assert nf.summary(model, x, mask).count("EncoderBlock") == (2 if name == "similarity" else 1)
    assert len(model.explain(x, mask)) == (2 if name == "similarity" else 1)


def test_a_figure_of_ones_own_chooses_the_best_epoch():
    def closeness(found):
        return -found.total / found.divisor

    class Own(Regressor):
        figures = MappingProxyType({"closeness": closeness})

    history = nf.fit(Own(), data_of("regressor"), validation=0.2, metric="closeness", **USUAL)
    assert history.validation_metric == [-loss for loss in history.validation_loss]
    assert nf.evaluate(Own(), data_of("regressor")).others.keys() == {"closeness"}


def test_what_belongs_to_classes_works_with_classes():
    data = data_of("next token")
    for options in (
        {"class_weight": "balanced"},
        {"label_smoothing": 0.1},
        {"validation": 0.2, "metric": "macro_f1"},
    ):
        plain, _ = trained("next token", validation=options.get("validation"))
        model, _ = trained("next token", data, **options)
        assert "metric" in options or (weights(model) != weights(plain)).any()


def test_a_checkpoint_of_ones_own_loop(tmp_path):
    model = Regressor()
    adam = nf.Adam(model.parameters(), lr=0.1)
    adam.step(model.loss_and_gradients(*data_of("regressor"))[1])
    nf.save_checkpoint(tmp_path, model, adam, notes={"epoch": 3})
    found = nf.load_checkpoint(tmp_path, model=Regressor(seed=5))
    np.testing.assert_array_equal(weights(found.model), weights(model))
    assert (found.optimizer.steps, found.notes) == (1, {"epoch": 3})
    with pytest.raises(nf.CheckpointError, match="it holds a Regressor"):
        nf.load_checkpoint(tmp_path)
    with pytest.raises(TypeError, match="model is a Regressor; expected an Encoder"):
        nf.save(model, tmp_path / "model.safetensors")


X, Y, MASK = data_of("regressor")
(A, B), SIMILAR, (OF_A, OF_B) = data_of("similarity")


@pytest.mark.parametrize(
    ("name", "data", "options", "error", "message"),
    [
        ("similarity", (A, SIMILAR), {}, TypeError, "x is a ndarray; expected a tuple of 2"),
        ("regressor", ((X, X), Y), {}, TypeError, "x is a tuple of 2; expected one array"),
        ("similarity", ((A, B), SIMILAR, OF_A), {}, TypeError, "mask is a ndarray; expected a tup"),
        (
            "similarity",
            ((A, B), SIMILAR, (OF_B, OF_A)),
            {},
            ValueError,
            r"mask has shape \(20, 5\)",
        ),
        ("similarity", ((A, B), SIMILAR, (None, OF_A)), {}, ValueError, r"mask\[1\] has shape"),
        (
            "similarity",
            ((A, B[:3]), SIMILAR),
            {},
            ValueError,
            r"x\[1\] in data has 3 samples and x",
        ),
        ("regressor", (X, Y[:3]), {}, ValueError, "y in data has 3 samples and x has 20"),
        ("regressor", (X, Y[:, :1].copy()), {}, ValueError, r"y has shape \(20, 1\); expected"),
        ("regressor", (X, Y), {"class_weight": "balanced"}, TypeError, "class_weight is given and"),
        ("regressor", (X, Y), {"label_smoothing": 0.1}, TypeError, "has no labels; expected 0"),
        ("regressor", (X, Y), {"metric": "macro_f1"}, ValueError, "knows no classes"),
        ("regressor", (X, Y), {"loss": SoftmaxCrossEntropy()}, ValueError, "if this is one-hot"),
        ("next token", (X, Y), {"loss": MeanSquaredError()}, ValueError, "y has shape"),
    ],
)
def test_wrong_calls_are_refused(name, data, options, error, message):
    with pytest.raises(error, match=message):
        nf.fit(MODELS[name](), data, progress=False, **options)


def test_what_a_model_forgot_is_told():
    class Nothing(nf.Model):
        def __init__(self):
            self.read = nf.layers.Linear(FEATURES, 2, seed=0, dtype="float64")
            self.flatten()

        def forward(self, x, context):
            return self.read.forward(x, context)

        def backward(self, dy, cache, gradients):
            return self.read.backward(dy, cache, gradients)

    with pytest.raises(TypeError, match=r"Nothing has no loss; expected one\. Set self\.loss"):
        nf.fit(Nothing(), (X, Y), progress=False)
    model = Nothing()
    model.loss = SoftmaxCrossEntropy()
    with pytest.raises(TypeError, match="Nothing has no n_classes"):
        nf.fit(model, (X, np.zeros(len(X), int)), progress=False)
    with pytest.raises(TypeError, match=r"expected an npformer\.Model"):
        nf.fit(nf.layers.Linear(2, 2, seed=0), (X, Y), progress=False)


def test_sizes_are_those_of_the_data():
    assert data_of("similarity")[0][1].shape == (20, LENGTH - 1, FEATURES)
    assert data_of("next token")[0].max() == WORDS - 1
