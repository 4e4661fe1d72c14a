"""Data that stay in files: the numbers of a training are those of the same data in memory."""

import numpy as np
import pytest

import npformer as nf
from npformer.core.inputs import Sequences
from npformer.data import read_ahead, sharded, stored_samples
from npformer.data.stored import ShardedArray

N, LENGTH, VOCABULARY, CLASSES = 97, 9, 30, 3


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(stored_samples, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(read_ahead, "SLOW_READ", 0.0)  # a thread reads each next batch


def samples(labels="sequence", vectors=False, n=N, seed=0):
    """Return x, y, mask and types."""
    rng = np.random.default_rng(seed)
    mask = np.arange(LENGTH) < rng.integers(2, LENGTH + 1, n)[:, None]
    x = np.where(mask, rng.integers(1, VOCABULARY, (n, LENGTH)), 0)
    if vectors:
        x = np.where(mask[..., None], rng.normal(size=(n, LENGTH, 4)), 0.0)
    y = rng.integers(0, CLASSES, (n, LENGTH) if labels == "token" else n)
    return x, y, mask, rng.integers(0, 2, (n, LENGTH))


def model_of(labels="sequence", vectors=False, padding="exclude", **options):
    config = nf.EncoderConfig(
        d_model=16,
        n_layers=1,
        n_heads=2,
        d_ff=32,
        max_len=LENGTH,
        dropout=0.1,
        n_token_types=2,
    )
    of = {"n_features": 4} if vectors else {"vocab_size": VOCABULARY}
    pooling = "none" if labels == "token" else "mean"
    options = {"seed": 1, "dtype": "float64", "pooling": pooling} | of | options
    return nf.SequenceClassifier(config, CLASSES, **options)


def mapped(folder, arrays, files=0):
    """Return arrays written to disk: memory-mapped, or as so many files each."""
    mapped_arrays = []
    for k, array in enumerate(arrays):
        if array is None:
            mapped_arrays.append(None)
        elif files:
            for i, rows in enumerate(np.array_split(array, files)):
                np.save(folder / f"{k}-{i}.npy", rows)
            mapped_arrays.append(sharded(str(folder / f"{k}-*.npy")))
        else:
            np.save(folder / f"{k}.npy", array)
            mapped_arrays.append(np.load(folder / f"{k}.npy", mmap_mode="r"))
    return tuple(mapped_arrays)


def trained(data, model, **settings):
    defaults = {"epochs": 2, "batch_size": 16, "lr": 3e-3, "seed": 3, "progress": False}
    history = nf.fit(model, data, **(defaults | settings))
    return {name: np.array(value) for name, value in model.parameters().items()}, history


def assert_same(found, expected):
    for name, value in expected[0].items():
        assert found[0][name].tobytes() == value.tobytes(), name
    assert found[1].train_loss == expected[1].train_loss
    np.testing.assert_allclose(found[1].validation_loss, expected[1].validation_loss, rtol=1e-13)
    np.testing.assert_array_equal(found[1].validation_metric, expected[1].validation_metric)
    assert found[1].validation_rows == expected[1].validation_rows


@pytest.mark.parametrize("files", [0, 7])
@pytest.mark.parametrize("labels", ["sequence", "token"])
@pytest.mark.parametrize("vectors", [False, True])
def test_weights_are_those_of_data_in_memory(tmp_path, files, labels, vectors):
    data = samples(labels, vectors)
    models = [model_of(labels, vectors) for _ in range(2)]
    settings = {"validation": 0.2, "class_weight": "balanced"}
    expected = trained(data, models[0], **settings)
    assert_same(trained(mapped(tmp_path, data, files), models[1], **settings), expected)
    assert models[1].padding_id == models[0].padding_id == (None if vectors else 0)
    assert models[1].expects_mask


@pytest.mark.parametrize("by_token", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_weights_of_samples(tmp_path, by_token, stored):
    labels = "token" if by_token else "sequence"
    x, y, mask, types = samples(labels)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, y.shape)
    # "balanced" adds up weights, and those of tokens piece by piece: equal up to rounding.
    settings = {"metric": "macro_f1", "class_weight": [1, 2, 0.5] if by_token else "balanced"}
    settings["validation"] = samples(labels, n=33, seed=1)
    expected = trained((x, y, mask, types), model_of(labels), sample_weight=weight, **settings)
    *data, of_samples = mapped(tmp_path, (x, y, mask, types, weight))
    settings["sample_weight"] = of_samples if stored else weight
    (tmp_path / "v").mkdir()
    settings["validation"] = mapped(tmp_path / "v", settings["validation"])
    assert_same(trained(tuple(data), model_of(labels), **settings), expected)


def test_only_x_in_a_file(tmp_path):
    x, y, mask, types = samples()
    (stored,) = mapped(tmp_path, [x])
    of_stored, of_x = (trained((a, y, mask, types), model_of()) for a in (stored, x))
    assert_same(of_stored, of_x)


@pytest.mark.parametrize("padded", [0, 3, N])
def test_a_mask_made_of_the_padding_id(tmp_path, padded):
    x, y, _, types = samples()
    x[padded:] += x[padded:] == 0
    trainings = []
    for ids in (x, mapped(tmp_path, [x])[0]):
        model = model_of(padding_id=0)
        if padded:
            with pytest.warns(UserWarning, match="taken for padding"):
                trainings.append(trained((ids, y, None, types), model, validation=0.1))
        else:
            trainings.append(trained((ids, y, None, types), model, validation=0.1))
        assert model.expects_mask == bool(padded)
    assert_same(*trainings)


def test_an_id_that_a_token_has_too_is_not_the_padding_id(tmp_path):
    x, y, mask, types = samples()
    x[-1, 0] = 0
    model = model_of()
    trained(mapped(tmp_path, (x, y, mask, types)), model, epochs=1)
    assert model.padding_id is None


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", lambda y, p: p[y == 1].mean()])
def test_evaluation(tmp_path, metric):
    for labels in ("sequence", "token"):
        data = samples(labels)
        model = model_of(labels)
        (tmp_path / labels).mkdir()
        stored = mapped(tmp_path / labels, data, 3)
        of_memory, of_files = nf.evaluate(model, data), nf.evaluate(model, stored)
        assert of_files.labels == of_memory.labels
        assert of_files.accuracy == pytest.approx(of_memory.accuracy, rel=1e-13)
        assert of_files.loss == pytest.approx(of_memory.loss, rel=1e-13)
        assert of_files.macro_f1 == pytest.approx(of_memory.macro_f1, rel=1e-13)
        values = []
        for samples_of_training in (data, stored):
            _, history = trained(
                samples_of_training, model_of(labels), metric=metric, validation=0.3
            )
            values.append(history.validation_metric)
        np.testing.assert_allclose(*values, rtol=1e-13)


def test_pieces_without_weight_count_nothing(tmp_path):
    x, _, mask, types = samples()
    y = np.random.default_rng(5).normal(size=(N, CLASSES))
    model = model_of(output="mean_squared_error")
    weight = np.zeros(N)
    weight[[25, 96]] = 1.0, 3.0
    data = x, y, mask, types
    expected = nf.evaluate(model, data, sample_weight=weight)
    evaluation = nf.evaluate(model, mapped(tmp_path, data), sample_weight=weight)
    assert evaluation.loss == pytest.approx(expected.loss, rel=1e-13)


@pytest.mark.parametrize("progress", [True, False])
def test_a_long_look_at_the_data_is_shown(tmp_path, monkeypatch, capsys, progress):
    monkeypatch.setattr(stored_samples, "BAR_DELAY", 0.0)
    trained(mapped(tmp_path, samples()), model_of(), epochs=1, progress=progress)
    assert ("checking the data" in capsys.readouterr().err) == progress


def test_a_checkpoint_knows_its_data(tmp_path):
    arrays = samples()
    trained(mapped(tmp_path, arrays, 4), model_of(), epochs=1, checkpoint=tmp_path / "run")
    arrays[0][-1, 0] += 1
    (tmp_path / "other").mkdir()
    other = mapped(tmp_path / "other", arrays, 5)
    with pytest.raises(ValueError, match="data is '"):
        trained(other, model_of(), epochs=2, checkpoint=tmp_path / "run", resume=True)


def test_a_checkpoint_goes_on_whatever_the_number_of_files(tmp_path):
    for files in (2, 5):
        (tmp_path / str(files)).mkdir()
    settings = {"validation": 0.2, "checkpoint": tmp_path / "run"}
    trained(mapped(tmp_path / "2", samples(), 2), model_of(), epochs=1, **settings)
    data = mapped(tmp_path / "5", samples(), 5)
    resumed = trained(data, model_of(), epochs=2, resume=True, **settings)
    assert_same(resumed, trained(data, model_of(), epochs=2, validation=0.2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y, m, t: x.__setitem__((55, 2), 99), "samples from 50 to 59, .* x holds 99"),
        (lambda x, y, m, t: y.__setitem__(96, 7), "samples from 90 to 96, .*y holds 7"),
        (lambda x, y, m, t: t.__setitem__((0, 0), 5), "samples from 0 to 9, .*types holds 5"),
    ],
)
def test_a_wrong_sample_is_found_before_the_first_step(tmp_path, change, words):
    arrays = samples()
    change(*arrays)
    model = model_of()
    before = model.parameters().flat.copy()
    with pytest.raises(ValueError, match=f"in data, among the {words}"):
        trained(mapped(tmp_path, arrays), model)
    np.testing.assert_array_equal(model.parameters().flat, before)


def test_files_that_change_during_the_training_are_noticed(tmp_path):
    arrays = samples()
    data = mapped(tmp_path, arrays)

    def spoil(state):
        arrays[0][:] = 77
        np.load(tmp_path / "0.npy", mmap_mode="r+")[:] = 77

    with pytest.raises(ValueError, match="x holds 77"):
        trained(data, model_of(), callbacks=[spoil])


def test_nan_is_found_in_files(tmp_path):
    x, y, mask, types = samples(vectors=True)
    x[60, 0] = np.nan
    with pytest.raises(nf.NonFiniteLossError, match="the input x"):
        trained(mapped(tmp_path, (x, y, mask, types)), model_of(vectors=True))
    with pytest.raises(ValueError, match="sample 60 are NaN"):
        nf.evaluate(model_of(vectors=True), mapped(tmp_path, (x, y, mask, types)))


def test_too_few_entries_are_told(tmp_path):
    x, y, mask, types = samples()
    data = mapped(tmp_path, (x, y[:-1], mask, types))
    with pytest.raises(ValueError, match="y in data has 96 samples and x has 97"):
        trained(data, model_of())
    data = mapped(tmp_path, (x, y, mask, types))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(5,\); expected \(97,\)"):
        trained(data, model_of(), sample_weight=np.ones(5))


def test_no_label_at_all(tmp_path):
    x, y, mask, types = samples("token")
    with pytest.raises(ValueError, match="data has no labels"):
        trained(mapped(tmp_path, (x, np.full_like(y, -1), mask, types)), model_of("token"))
    for weight in (np.zeros(N), np.zeros(y.shape)):
        data = mapped(tmp_path, (x, y, mask, types))
        with pytest.raises(ValueError, match="sample_weight is 0 for every sample"):
            trained(data, model_of("token"), sample_weight=weight)


# Predictions into a file ----------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["probabilities", "labels", "outputs"])
@pytest.mark.parametrize("labels", ["sequence", "token"])
@pytest.mark.parametrize("files", [0, 4])
def test_predictions_are_those_in_memory(tmp_path, kind, labels, files):
    x, _, mask, types = samples(labels)
    model = model_of(labels)
    calls = {"probabilities": model.predict_probabilities, "labels": model.predict}
    in_memory = (calls | {"outputs": model})[kind](x, mask, types=types)
    x, mask, types = mapped(tmp_path, (x, mask, types), files)
    path = tmp_path / "predictions.npy"
    predictions = nf.predict_to_file(path, model, x, mask, types, kind=kind)
    assert isinstance(predictions, np.memmap)
    assert predictions.dtype == in_memory.dtype
    np.testing.assert_allclose(predictions, in_memory, rtol=1e-12)
    np.testing.assert_array_equal(np.load(path), predictions)
    assert not list(tmp_path.glob("*.part"))


def test_predictions_that_fail_leave_the_file_as_it_was(tmp_path):
    x, _, mask, types = samples()
    model = model_of()
    path = tmp_path / "predictions.npy"
    nf.predict_to_file(path, model, x, mask, types)
    before = path.read_bytes()
    x[70, 0] = VOCABULARY
    with pytest.raises(ValueError, match=r"samples from 70 to 79, .*x holds 30"):
        nf.predict_to_file(path, model, x, mask, types, overwrite=True)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"path": "p.npz"}, ValueError, "a name that ends in '.npy'"),
        ({"path": "missing/p.npy"}, FileNotFoundError, "npy is in a folder that does not"),
        ({"kind": "label"}, ValueError, "kind is 'label'; .*Did you mean 'labels'"),
        ({"x": [[1, 2]]}, TypeError, "x is a list; expected a NumPy array"),
        ({"mask": np.ones((3, LENGTH), bool)}, ValueError, "mask has 3 samples and x has 97"),
        ({"x": np.zeros((0, LENGTH), int), "mask": None}, ValueError, "x has no samples"),
        ({"model": 3}, TypeError, "model is an int; expected a Model"),
    ],
)
def test_wrong_arguments_of_predict_to_file(tmp_path, monkeypatch, arguments, error, words):
    monkeypatch.chdir(tmp_path)
    x, _, mask, _ = samples()
    keywords = {"path": "p.npy", "model": model_of(), "x": x, "mask": mask} | arguments
    with pytest.raises(error, match=words):
        nf.predict_to_file(**keywords)
    assert not list(tmp_path.iterdir())


def test_memory_does_not_grow_with_the_data(tmp_path):
    """Nothing reads more rows at a time than a batch, or a piece."""
    read = []

    class Watched(ShardedArray):
        def __getitem__(self, rows):
            values = super().__getitem__(rows)
            read.append(len(values))
            return values

    data = samples()
    mapped(tmp_path, data, 5)
    stored = tuple(Watched(sharded(str(tmp_path / f"{k}-*.npy")).files) for k in range(4))
    x, _, mask, types = stored
    model = model_of("sequence")
    y = data[1]
    trained((x, y, mask, types), model, validation=0.2, class_weight="balanced")
    nf.evaluate(model, (x, y, mask, types))
    nf.predict_to_file(tmp_path / "p.npy", model, x, mask, types)
    assert max(read) <= 16


def test_few_rows_are_read_at_a_time_if_each_is_large(monkeypatch):
    monkeypatch.undo()
    ids, vectors = np.zeros((9, LENGTH), int), np.zeros((9, LENGTH, 1 << 20), "float32")
    of_ids, of_vectors = (Sequences(ids),), (Sequences(vectors),)
    assert stored_samples.rows_at_once(model_of(), of_ids) == stored_samples.MOST_AT_ONCE
    assert stored_samples.rows_at_once(model_of(), of_vectors) == 1
    monkeypatch.setattr(stored_samples, "BYTES_AT_ONCE", 100 * 8 * LENGTH * CLASSES)
    assert stored_samples.rows_at_once(model_of(pooling="none"), of_ids) == 100


def test_labels_of_another_shape_are_not_read(tmp_path):
    x, y, mask, types = mapped(tmp_path, samples("token"), 3)
    read = []
    original = type(y).__getitem__
    type(y).__getitem__ = lambda self, rows: read.append(rows) or original(self, rows)
    try:
        with pytest.raises(ValueError, match=r"y has shape \(1, 9\); expected \(1,\)"):
            trained((x, y, mask, types), model_of())
    finally:
        type(y).__getitem__ = original
    assert read == [slice(0, 1)]
