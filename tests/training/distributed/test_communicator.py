"""What ranks tell each other, and what they do if one of them fails."""

import subprocess
import sys

import pytest

from npformer.training.distributed import Communicator, communicator_of, number_of_launched_ranks
from npformer.training.distributed.world import RANKS, SIZES
from tests.training.distributed.ranks import ROOT, environment, needs_mpi, run_ranks
from tests.training.distributed.talk import exchange


@needs_mpi
@pytest.mark.processes
def test_every_exchange_between_ranks_works():
    assert run_ranks(4, "talk", "exchange").stdout.count("is done") == 4


@needs_mpi
@pytest.mark.processes
@pytest.mark.parametrize(("way", "speaks"), [("one", 2), ("several", 1), ("late", 1), ("alone", 1)])
def test_an_error_on_one_rank_ends_all_ranks_with_one_message(way, speaks):
    process = run_ranks(3, "talk", way, timeout=20, fails=True)
    assert process.stderr.count("ValueError: something is wrong") == 1
    assert f"This is rank {speaks} of 3." in process.stderr
    assert ("Abort" in process.stderr) <= (way == "alone")
    assert "done" not in process.stdout


@needs_mpi
@pytest.mark.processes
def test_nobody_waits_for_a_rank_that_is_killed():
    assert "done" not in run_ranks(3, "talk", "killed", timeout=20, fails=True).stdout


def test_one_rank_alone():
    ranks = Communicator()
    exchange(ranks)
    with ranks.guard() as same:
        assert same is ranks
    with pytest.raises(KeyError), ranks.guard():
        raise KeyError


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shards_follow_each_other(size):
    ranks = Communicator()
    ranks.size = size
    for n in (0, 1, 5, 100):
        shards = [ranks.shard(n, k) for k in range(size)]
        assert [i for shard in shards for i in range(n)[shard]] == list(range(n))
        lengths = [shard.stop - shard.start for shard in shards]
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("value", [3, "mpi", object()])
def test_what_is_no_communicator(value):
    with pytest.raises(TypeError, match=r"communicator is .*expected npformer.distributed.world"):
        communicator_of(value)


@pytest.mark.parametrize(
    ("variables", "n"),
    [
        ({}, None),
        ({"PMI_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, 2),
        ({"PMIX_RANK": "0"}, 0),
    ],
)
def test_the_environment_tells_whether_there_is_a_launcher(monkeypatch, variables, n):
    for name in (*SIZES, *RANKS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert number_of_launched_ranks() == n


def run(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment() | variables,
        capture_output=True,
        text=True,
    )


@needs_mpi
def test_no_more_blas_threads_than_were_set():
    code = (
        "from mpi4py import MPI; from threadpoolctl import threadpool_info\n"
        "import npformer; from npformer.training.distributed.mpi import MPICommunicator\n"
        "MPICommunicator(MPI.COMM_WORLD)\n"
        "print({i['num_threads'] for i in threadpool_info()} - {1})"
    )
    assert run(code).stdout.strip() == "set()"  # one, as `environment` says


def test_without_a_launcher_mpi4py_is_not_imported():
    code = "import sys, npformer; npformer.distributed.world(); assert 'mpi4py' not in sys.modules"
    process = run(code)
    assert process.returncode == 0, process.stderr


def test_a_missing_mpi4py_is_named():
    code = "import sys; sys.modules['mpi4py'] = None\nimport npformer; npformer.distributed.world()"
    process = run(code, PMI_SIZE="2", PMI_RANK="0")
    assert "LauncherError: this process was started by mpiexec" in process.stderr
    assert "python -m pip install 'npformer[mpi]'" in process.stderr


def test_the_launcher_of_another_mpi_is_told_apart():
    code = (
        "import sys, types; m = types.ModuleType('mpi4py'); m.MPI = types.SimpleNamespace("
        "COMM_WORLD=types.SimpleNamespace(Get_size=lambda: 1), "
        "Get_library_version=lambda: 'Some MPI 1.0\\n'); sys.modules['mpi4py'] = m\n"
        "import npformer; npformer.distributed.world()"
    )
    process = run(code, OMPI_COMM_WORLD_SIZE="4")
    assert "mpiexec started 4 ranks, and mpi4py sees 1" in process.stderr
    assert "Some MPI 1.0" in process.stderr
