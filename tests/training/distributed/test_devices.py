"""A rank on each GPU, shown on fake ones: what NCCL is asked for, and what comes out."""

import pytest

import npformer as nf
from tests.training.distributed.ranks import assert_ended_well, needs_mpi, run_jobs
from tests.training.distributed.test_equal import assert_equal, assert_same_bits
from tests.training.distributed.train import results

pytestmark = [pytest.mark.processes, needs_mpi]

EVERY = {"mixers": list(nf.MIXERS), "epochs": 3, "lr": 3e-3, "clip_norm": 1.0, "validation": 0.2}
ONE = EVERY | {"mixers": ["attention"]}
WAITS = EVERY | {"check_every": 100, "epochs": 2, "validation": None}
ADAM = ONE | {"lr": None, "optimizer": {"lr": 1e-3, "weight_decay": 0.1}}

JOBS = {
    2: {
        "nccl": EVERY,
        "host": ONE,
        "missing": ONE,
        "shared": ONE,
        "unlike": ONE,
        "nccl, waits": WAITS,
        "nccl, whole": ADAM,
        "nccl, shards": ADAM | {"shard_moments": True},
    },
    3: {"nccl": ONE, "nccl, whole": ADAM, "nccl, shards": ADAM | {"shard_moments": True}},
}
"""Trainings by their numbers of ranks; the first word of a name says how GPUs are joined."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    run_jobs(0, folder, {"every": ("train", EVERY | {"validate": False})})
    return results(folder / "every")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run all trainings; return their folder, and how the one of unlike ranks ended."""
    folder = tmp_path_factory.mktemp("runs")
    ended = {}
    for n, jobs in JOBS.items():
        work = {
            name: ("devices", name.partition(",")[0], settings) for name, settings in jobs.items()
        }
        ended |= {f"{n}/{name}": ends for name, ends in run_jobs(n, folder / str(n), work).items()}
    unlike = ended.pop("2/unlike")
    assert_ended_well(ended)
    return folder, unlike


@pytest.mark.parametrize("name", ["2/nccl", "3/nccl", "2/host"])
def test_it_ends_as_in_one_process(runs, name, alone):
    ends = results(runs[0] / name)
    assert_equal(ends, {mixer: alone[mixer] for mixer in ends})
    for _, history in ends.values():
        assert (history["calls"] > 0) == ("nccl" in name)
        assert history["warnings"] == [[]] * int(name[0])


def test_nothing_waits_for_a_gpu_but_the_mean_loss_of_an_epoch(runs):
    ends = results(runs[0] / "2/nccl, waits")
    assert ends.keys() == set(nf.MIXERS)
    for mixer, (_, history) in ends.items():
        assert history["waits"] == [*[[]] * 4, ["get()"]] * 2, mixer


@pytest.mark.parametrize("n", JOBS)
def test_shards_of_moments_change_no_bit(runs, n):
    shards, unsharded = (results(runs[0] / f"{n}/nccl, {name}") for name in ("shards", "whole"))
    assert_same_bits(shards, unsharded)


UNJOINED = pytest.mark.parametrize(
    ("way", "words"),
    [
        ("missing", "NCCL cannot be loaded on rank 1; expected it beside CuPy. Install it"),
        ("shared", "ranks 0 and 1 share the GPU 0000:00 of "),
    ],
)


@UNJOINED
def test_the_host_joins_gpus_that_nccl_cannot_join(runs, alone, way, words):
    ends = results(runs[0] / "2" / way)
    assert_equal(ends, {"attention": alone["attention"]})
    assert ends["attention"][1]["calls"] == 0


@UNJOINED
def test_one_rank_warns_that_gpus_cannot_be_joined(runs, way, words):
    (message,), other_warnings = results(runs[0] / "2" / way)["attention"][1]["warnings"]
    assert words in message
    assert "which is slower" in message
    assert other_warnings == []


def test_ranks_on_different_backends_are_refused(runs):
    (message,) = [error for error in runs[1] if not error.startswith("RankFailed")]
    assert "backend is 'numpy' on rank 1, and 'fake' on rank 0" in message
    assert len(runs[1]) == 2
    assert all(runs[1])
