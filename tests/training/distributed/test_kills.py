"""Random ranks are killed at random moments: nothing hangs, and the training goes on as it was."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import pytest

import npformer as nf
from tests.training.distributed.ranks import ROOT, command_of, environment, needs_mpi
from tests.training.distributed.test_equal import assert_same_bits
from tests.training.distributed.train import results

pytestmark = [pytest.mark.processes, needs_mpi]

RANKS = 3
KILLS = int(os.environ.get("NPFORMER_KILLS", "8"))

AT_MOST = 10.0
"""Seconds from a kill until all ranks have ended."""


def begin(folder):
    """Start ranks that train, or go on from the checkpoint; return it and their process ids."""
    settings = {"mixers": ["attention"], "epochs": 12, "resume": True}
    work = {"run": ("train", settings | {"checkpoint": str(folder / "checkpoint")})}
    (folder / "run").mkdir(parents=True, exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps(work))
    files = [folder / f"rank-{k}.pid" for k in range(RANKS)]
    for file in files:
        file.unlink(missing_ok=True)
    process = subprocess.Popen(
        command_of(RANKS, "jobs", folder),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < until, process.communicate()
        time.sleep(0.005)
    return process, [int(file.read_text()) for file in files]


def end(process, folder):
    """Wait for a training; return what it ended with, None if it was killed."""
    process.communicate(timeout=60)
    return results(folder / "run") if process.returncode == 0 else None


def test_killed_ranks(tmp_path):
    rng = random.Random(0)
    process, _ = begin(tmp_path / "undisturbed")
    began = time.monotonic()
    expected = end(process, tmp_path / "undisturbed")
    duration = time.monotonic() - began
    kills = 0
    finished = 0
    slowest = 0.0
    while kills < KILLS:
        folder = tmp_path / str(finished)
        process, pids = begin(folder)
        time.sleep(rng.uniform(0.0, 0.8 * duration))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[rng.randrange(RANKS)], signal.SIGKILL)
        killed = time.monotonic()
        if (ends := end(process, folder)) is not None:  # it had ended before
            assert_same_bits(ends, expected)
            finished += 1
            continue
        kills = kills + 1
        slowest = max(slowest, time.monotonic() - killed)
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        if (folder / "checkpoint-attention" / "checkpoint.safetensors").exists():
            nf.load_checkpoint(folder / "checkpoint-attention")
    assert slowest < AT_MOST
    folder = tmp_path / str(finished)
    assert_same_bits(end(begin(folder)[0], folder), expected)
    print(
        f"{RANKS} ranks: {kills} kills, the slowest end {slowest:.2f} s after one; "
        f"{finished + 1} trainings came through, with the undisturbed one's weights"
    )
