"""Data in files under several ranks: each reads its part, and all end as one process in memory."""

import json
import sys

import numpy as np
import pytest

import npformer as nf
from tests.training.distributed.large import FEATURES, LENGTH, N
from tests.training.distributed.ranks import assert_ended_well, needs_mpi, run_jobs, run_ranks
from tests.training.distributed.stored import DATA, SETTINGS
from tests.training.distributed.test_equal import assert_weights_equal
from tests.training.distributed.train import model_of

pytestmark = [pytest.mark.processes, needs_mpi]

WRONG = {
    "label": "ValueError: in data, among the samples from",
    "fewer": "ValueError: in data, x, y, mask, types and weights have (shape, dtype)",
    "predict": "x holds 30; expected whole numbers from 0 to 29",
}

ORDER = (2, 0, 3)
HANDED_ON = ((2, 0), (2, 3), (0, 3))
"""Numbers of ranks that begin a training, and that end it; 0: this process."""


@pytest.fixture(scope="module")
def in_memory():
    """Return model, history and evaluation of one process that has all data in memory."""
    model = model_of("attention")
    return model, nf.fit(model, DATA, **SETTINGS), nf.evaluate(model, DATA)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run all ways by each number of ranks; return their folder, and how they ended."""
    folder = tmp_path_factory.mktemp("runs")
    ended = {}
    for n in ORDER:
        work = {way: ("stored", way) for way in ("all", *(WRONG if n else ()))}
        for before, after in HANDED_ON:
            of = ("stored", "goes on", str(folder / f"{before} to {after}"))
            work |= {f"begins for {after}": (*of, 1)} if n == before else {}
            work |= {f"goes on from {before}": of} if n == after else {}
        ended[n] = run_jobs(n, folder / str(n), work)
    return folder, ended


def read_by(n, folder, which):
    """Return which rows each rank has read."""
    return [json.loads((folder / f"{k}.json").read_text())[which] for k in range(n)]


def assert_equal(folder, model, history, evaluation):
    assert_weights_equal(np.load(folder / "weights.npz"), model.parameters())
    losses = json.loads((folder / "history.json").read_text())
    np.testing.assert_allclose(losses["train_loss"], history.train_loss, atol=1e-12)
    np.testing.assert_allclose(losses["validation_loss"], history.validation_loss, atol=1e-12)
    np.testing.assert_allclose(
        losses["evaluation"], [evaluation.loss, evaluation.accuracy], atol=1e-12
    )
    predicted = model.predict_probabilities(DATA[0], DATA[2])
    np.testing.assert_allclose(np.load(folder / "predicted.npy"), predicted, atol=1e-12)


@pytest.mark.parametrize(
    "way", [*(f"{n}/all" for n in ORDER), *(f"{n}/goes on from {m}" for m, n in HANDED_ON)]
)
def test_all_ends_as_with_data_in_memory(runs, way, in_memory):
    assert_equal(runs[0] / way, *in_memory)


@pytest.mark.parametrize("n", [2, 3])
def test_each_rank_reads_its_part_of_each_batch_alone(runs, n, in_memory):
    folder = runs[0] / f"{n}/all"
    held_out = set(in_memory[1].validation_rows)
    trained = set(range(len(DATA[0]))) - held_out
    by_epoch = [[], [], []]
    for step, of_ranks in enumerate(zip(*read_by(n, folder, "steps"), strict=True)):
        rows = [row for its in of_ranks for row in its]
        assert len(rows) <= 16
        assert all(its for its in of_ranks)
        by_epoch[step * 3 // (3 * -(-len(trained) // 16))].extend(rows)
    for rows in by_epoch:
        assert sorted(rows) == sorted(trained)  # each once, by one rank
    at_start = read_by(n, folder, "start")
    checked = sorted(row for its in at_start for rows in its if len(rows) <= 7 for row in rows)
    assert checked == list(range(len(DATA[0])))
    read = read_by(n, folder, "predicted")
    predicted = [sorted({row for rows in its for row in rows} - {0}) for its in read]
    assert sorted(row for its in predicted for row in its) == list(range(1, len(DATA[0])))


def test_an_error_on_one_rank_ends_all_ranks(runs):
    folder, ended = runs
    for n in (2, 3):
        for way, problem in WRONG.items():
            errors = ended[n][way]
            assert all(errors), way
            (message,) = [error for error in errors if not error.startswith("RankFailed")]
            assert "This is rank" in message
            assert problem in message
            assert not list((folder / str(n) / way).glob("predicted*"))


@pytest.mark.parametrize("n", ORDER)
def test_all_other_trainings_end_without_an_error(runs, n):
    _, ended = runs
    assert_ended_well({way: errors for way, errors in ended[n].items() if way not in WRONG})


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_rank_needs_less_memory_than_the_data(tmp_path):
    shape = (N, LENGTH, FEATURES)
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "float32", shape)  # zeros take no disk
    assert run_ranks(2, "large", tmp_path / "x.npy").stdout.count("too much") == 2
