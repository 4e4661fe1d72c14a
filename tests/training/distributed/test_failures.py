"""What one rank does to all: errors, signals, a full disk, other data."""

import json
import time

import pytest

import npformer as nf
from tests.training.distributed.ranks import needs_mpi, run_ranks

pytestmark = [pytest.mark.processes, needs_mpi]


def ends(n, folder):
    """Return how each rank said that it ended."""
    return [json.loads((folder / f"{k}.json").read_text()) for k in range(n)]


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("nan", "NonFiniteLossError: the loss is not finite at step"),
        ("callback", "RuntimeError: this rank has had enough"),
        ("gradient", "NonFiniteGradientError: the gradient of classify.bias holds NaN"),
        ("double", "RuntimeError: after epoch 2 the weights on rank"),
        ("data", "ValueError: data is '89 samples of shape"),
        ("labels", "ValueError: data is '90 samples of shape"),
        ("epochs", "ValueError: epochs is 4 on rank"),
        ("lr", "ValueError: lr is 0.001 on rank"),
        ("clip_norm", "ValueError: clip_norm is 1.0 on rank"),
    ],
)
def test_an_error_on_one_rank_ends_all_with_one_message(n, way, problem, tmp_path):
    began = time.monotonic()
    done = run_ranks(n, "failing", tmp_path, way, fails=True)
    assert time.monotonic() - began < 10
    assert done.stderr.count("Error: ") == 1, done.stderr
    assert problem in done.stderr
    assert f" of {n}." in done.stderr  # This is rank 1 of 4.
    assert "Abort" not in done.stderr
    if way == "nan":
        assert "is the input x on rank" in done.stderr
    if way == "callback":
        assert f"This is rank {n - 1} of {n}." in done.stderr
        assert nf.load_checkpoint(tmp_path / "checkpoint").optimizer.steps == 6  # of the 1st epoch


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize(
    ("way", "stopped"),
    [("stop", "enough"), ("SIGTERM", "terminated"), ("SIGINT", "interrupted")],
)
def test_all_ranks_stop_after_the_same_step(n, way, stopped, tmp_path):
    run_ranks(n, "failing", tmp_path, way)
    assert ends(n, tmp_path) == [{"stopped": stopped, "steps": 8}] * n
    assert nf.load_checkpoint(tmp_path / "checkpoint").optimizer.steps == 8


def test_a_full_disk_is_a_warning_and_the_checkpoint_before_it_is_whole(tmp_path):
    done = run_ranks(2, "failing", tmp_path, "full")
    assert "could not be written" in done.stderr
    assert nf.load_checkpoint(tmp_path / "checkpoint").optimizer.steps == 6


def test_a_folder_that_cannot_be_written_ends_all_ranks(tmp_path):
    (tmp_path / "checkpoint").write_text("a file")
    done = run_ranks(3, "failing", tmp_path, "plain", fails=True)
    assert done.stderr.count("Error: ") == 1
