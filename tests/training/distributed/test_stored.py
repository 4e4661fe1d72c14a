"""Data in files under several ranks: each reads its part, and all end as one process in memory."""

import json
import sys

import numpy as np
import pytest

import npformer as nf
from tests.training.distributed.large import FEATURES, LENGTH, N
from tests.training.distributed.ranks import needs_mpi, run_ranks
from tests.training.distributed.test_equal import assert_weights_equal
from tests.training.distributed.train import model_of, samples

pytestmark = [pytest.mark.processes, needs_mpi]

DATA = samples()
SETTINGS = {"epochs": 3, "batch_size": 16, "lr": 3e-3, "seed": 3, "progress": False}
SETTINGS |= {"validation": 0.2, "class_weight": "balanced"}


@pytest.fixture(scope="module")
def in_memory():
    """Return model, history and evaluation of one process that has all data in memory."""
    model = model_of("attention")
    history = nf.fit(model, DATA, **SETTINGS)
    return model, history, nf.evaluate(model, DATA)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the data, in seven files an array."""
    (tmp_path / "data").mkdir()
    for k, array in enumerate(DATA):
        for i, part in enumerate(np.array_split(array, 7)):
            np.save(tmp_path / "data" / f"{k}-{i}.npy", part)
    return tmp_path


def read_by(n, folder, which):
    """Return which rows each rank has read."""
    return [json.loads((folder / f"{k}.json").read_text())[which] for k in range(n)]


def assert_equal(folder, model, history, found):
    assert_weights_equal(np.load(folder / "weights.npz"), model.parameters())
    told = json.loads((folder / "history.json").read_text())
    np.testing.assert_allclose(told["train_loss"], history.train_loss, atol=1e-12)
    np.testing.assert_allclose(told["validation_loss"], history.validation_loss, atol=1e-12)
    np.testing.assert_allclose(told["evaluation"], [found.loss, found.accuracy], atol=1e-12)
    predicted = model.predict_probabilities(DATA[0], DATA[2])
    np.testing.assert_allclose(np.load(folder / "predicted.npy"), predicted, atol=1e-12)


@pytest.mark.parametrize("n", [0, 2, 4])
def test_all_ends_as_with_data_in_memory(n, folder, in_memory):
    run_ranks(n, "stored", folder, "all")
    assert_equal(folder, *in_memory)


@pytest.mark.parametrize("n", [2, 4])
def test_each_rank_reads_its_part_of_each_batch_alone(n, folder, in_memory):
    run_ranks(n, "stored", folder, "all")
    held_out = set(in_memory[1].validation_rows)
    trained = set(range(len(DATA[0]))) - held_out
    by_epoch = [[], [], []]
    steps = zip(*read_by(n, folder, "steps"), strict=True)
    for step, of_ranks in enumerate(steps):
        rows = [row for its in of_ranks for row in its]
        assert len(rows) <= 16
        assert all(its for its in of_ranks)
        by_epoch[step * 3 // (3 * -(-len(trained) // 16))].extend(rows)
    for rows in by_epoch:
        assert sorted(rows) == sorted(trained)  # each once, by one rank
    at_start = read_by(n, folder, "start")
    checked = sorted(row for its in at_start for rows in its if len(rows) <= 7 for row in rows)
    assert checked == list(range(len(DATA[0])))
    predicted = [
        sorted({row for rows in its for row in rows} - {0})
        for its in read_by(n, folder, "predicted")
    ]
    assert sorted(row for its in predicted for row in its) == list(range(1, len(DATA[0])))


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 0), (0, 2)])
def test_it_goes_on_with_another_number_of_ranks(before, after, folder, in_memory):
    run_ranks(before, "stored", folder, "begin")
    run_ranks(after, "stored", folder, "resume")
    assert_equal(folder, *in_memory)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("label", "ValueError: in data, among the samples from"),
        ("fewer", "ValueError: in data, x, y, mask, types and weights have (shape, dtype)"),
        ("predict", "x holds 30; expected whole numbers from 0 to 29"),
    ],
)
def test_what_is_wrong_on_one_rank_ends_all(n, way, problem, folder):
    done = run_ranks(n, "stored", folder, way, fails=True)
    assert done.stderr.count("This is rank") == 1
    assert problem in done.stderr
    assert not list(folder.glob("predicted*"))


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("n", [0, 2])
def test_a_rank_needs_less_memory_than_the_data(n, tmp_path):
    shape = (N, LENGTH, FEATURES)
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "float32", shape)  # zeros take no disk
    run_ranks(n, "large", tmp_path / "x.npy", "mapped")
    done = run_ranks(n, "large", tmp_path / "x.npy", "memory", fails=True)
    assert "MemoryError" in done.stderr
