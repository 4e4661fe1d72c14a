"""Random ranks are killed at random moments: nothing hangs, and the training goes on as it was."""

import contextlib
import os
import random
import signal
import subprocess
import time

import pytest

import npformer as nf
from tests.training.distributed.ranks import ROOT, command_of, environment, needs_mpi, run_ranks

pytestmark = [pytest.mark.processes, needs_mpi]

KILLS = int(os.environ.get("NPFORMER_KILLS", "8"))

AT_MOST = 10.0
"""Seconds from a kill until all ranks have ended."""


def begin(n, folder):
    for file in folder.glob("rank-*.pid"):
        file.unlink()
    return subprocess.Popen(
        command_of(n, "killed", folder),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_ranks(n, folder, process):
    """Wait until all ranks have started; return their process ids."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        files = [folder / f"rank-{k}.pid" for k in range(n)]
        if all(file.exists() and file.read_text() for file in files):
            return [int(file.read_text()) for file in files]
        time.sleep(0.005)
    raise AssertionError(process.communicate())


def test_killed_ranks(tmp_path):
    n, rng = 3, random.Random(0)
    (tmp_path / "undisturbed").mkdir()
    began = time.monotonic()
    run_ranks(n, "killed", tmp_path / "undisturbed")
    whole = time.monotonic() - began
    expected = (tmp_path / "undisturbed" / "weights").read_bytes()
    kills = finished = 0
    slowest = 0.0
    while kills < KILLS:
        folder = tmp_path / str(finished)
        folder.mkdir(exist_ok=True)
        process = begin(n, folder)
        pids = wait_for_ranks(n, folder, process)
        time.sleep(rng.uniform(0.0, 0.5 * whole))
        rank = rng.randrange(n)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[rank], signal.SIGKILL)
        killed = time.monotonic()
        process.communicate(timeout=AT_MOST)
        took = time.monotonic() - killed
        if process.returncode == 0:  # it had ended before
            assert (folder / "weights").read_bytes() == expected
            finished += 1
            continue
        slowest = max(slowest, took)
        kills += 1
        assert took < AT_MOST
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        if (folder / "checkpoint" / "checkpoint.safetensors").exists():
            nf.load_checkpoint(folder / "checkpoint")
    folder = tmp_path / str(finished)
    run_ranks(n, "killed", folder)
    assert (folder / "weights").read_bytes() == expected
    print(
        f"{n} ranks: {kills} kills, the slowest end {slowest:.2f} s after one; {finished + 1} "
        "trainings came through, with the undisturbed one's weights"
    )
