"""Several ranks end with the weights of one process, and with the same bits on each."""

import numpy as np
import pytest

import npformer as nf
from tests.training.distributed.ranks import assert_ended_well, needs_mpi, run_jobs
from tests.training.distributed.train import results

pytestmark = needs_mpi

EVERY = {"mixers": list(nf.MIXERS), "epochs": 17, "clip_norm": 1.0, "weight_decay": 0.01}
"""102 steps of each mixer, with padding, dropout, clipping and weight decay."""

ONE = {"mixers": ["attention"], "epochs": 2}
SMOOTH = {"mixers": ["attention", "dense_synthesizer"], "epochs": 4}
SMOOTH |= {"no_decay": ["*.bias"], "weight_decay": 0.1, "clip_norm": 0.5}

OTHER = {
    "shuffled": {"batches": "shuffled"},
    "fewer samples than ranks": {"batch_size": 8},  # 2 in the last batch
    "accumulated": {"accumulate": 2, "batch_size": 8},
    "micro_batch": {"micro_batch": 3},
    "workers": {"workers": 2},
    "a share to validate on": {"validation": 0.2, "validate": False},
    "class_weight": {"class_weight": "balanced"},
    "sample_weight": {"sample_weight": [k % 5 for k in range(90)], "batch_size": 8},
    "dropouts": {"model": {"attention_dropout": 0.1, "ffn_dropout": 0.1, "token_dropout": 0.1}},
}

ORDER = (4, 2, 0, 3)
"""Numbers of ranks, in the order of their starts; 0: this process."""

HANDED_ON = ((4, 2), (2, 2), (2, 0), (2, 3), (0, 3))
"""Numbers of ranks that begin a training, and that end it."""

ROUNDING_ALONE = "key.bias"
"""Of attention: its gradient is zero by nature, so what Adam makes of it is rounding."""


def assert_weights_equal(found, expected, bound=1e-12, of=""):
    for name, value in expected.items():
        if not name.endswith(ROUNDING_ALONE):
            np.testing.assert_allclose(
                found[name], value, rtol=0, atol=bound, err_msg=f"{of}: {name}"
            )


def assert_equal(found, expected, bound=1e-12):
    assert expected.keys() == found.keys()
    for mixer, (weights, history) in expected.items():
        assert_weights_equal(found[mixer][0], weights, bound, mixer)
        for name in ("train_loss", "validation_loss", "validation_accuracy"):
            np.testing.assert_allclose(found[mixer][1][name], history[name], rtol=0, atol=bound)


def assert_same_bits(found, expected):
    assert expected.keys() == found.keys()
    for mixer, (weights, history) in expected.items():
        for name, value in weights.items():
            assert found[mixer][0][name].tobytes() == value.tobytes(), (mixer, name)
        for name in ("train_loss", "validation_loss"):
            assert found[mixer][1][name] == history[name]


def test_two_ranks_end_as_one_process(tmp_path):
    settings = EVERY | {"epochs": 1}
    for n in (0, 2):
        assert_ended_well(run_jobs(n, tmp_path / str(n), {"run": ("train", settings)}))
    ends = results(tmp_path / "2" / "run")
    assert_equal(ends, results(tmp_path / "0" / "run"))
    for _, history in ends.values():
        assert history["workers"] == {"2 ranks, each 1 worker": 6}


def jobs_of(n, folder):
    """Return the trainings of n ranks, with settings by name."""
    work = {name: ONE | changes for name, changes in OTHER.items()} if n in (0, 3) else {}
    work = work | ({"every mixer": EVERY} if n in (0, 2) else {})
    for shard in (False, True):
        work[f"{shard}"] = SMOOTH | {"shard_moments": shard}
        for before, after in HANDED_ON:
            name = f"{before} to {after}, {shard}"
            settings = SMOOTH | {"shard_moments": shard, "checkpoint": str(folder / name)}
            if n == before:
                work[f"begin {name}"] = settings | {"epochs": 2}
            if n == after:
                work[name] = settings | {"resume": True}
    return {name: ("train", settings) for name, settings in work.items()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run all trainings, by one start for each number of ranks; return their folders."""
    folder = tmp_path_factory.mktemp("runs")
    for n in ORDER:
        assert_ended_well(run_jobs(n, folder / str(n), jobs_of(n, folder)))
    return folder


@pytest.mark.processes
@pytest.mark.parametrize(("n", "name"), [("2", "every mixer"), *(("3", name) for name in OTHER)])
def test_all_ends_as_in_one_process(runs, n, name):
    assert_equal(results(runs / n / name), results(runs / "0" / name))


@pytest.mark.processes
@pytest.mark.parametrize("n", [2, 3, 4])
def test_shards_of_moments_change_no_bit(runs, n):
    assert_same_bits(results(runs / f"{n}/True"), results(runs / f"{n}/False"))


@pytest.mark.processes
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize(("before", "after"), HANDED_ON)
def test_another_number_of_ranks_goes_on(runs, before, after, shard):
    ends = results(runs / f"{after}/{before} to {after}, {shard}")
    assert_equal(ends, results(runs / "0/False"))
    for _, history in ends.values():
        assert len(history["workers"]) == (1 if before == after else 2)
    if before == after:
        assert_same_bits(ends, results(runs / f"{after}/{shard}"))
