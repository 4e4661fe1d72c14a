"""What one rank does to all: errors, signals, a full disk, other data."""

import json

import pytest

import npformer as nf
from tests.training.distributed.ranks import needs_mpi, run_jobs, run_ranks

pytestmark = [pytest.mark.processes, needs_mpi]

ERRORS = {
    "nan": "NonFiniteLossError: the loss is not finite at step",
    "callback": "RuntimeError: this rank has had enough",
    "gradient": "NonFiniteGradientError: the gradient of classify.bias holds NaN",
    "double": "RuntimeError: after epoch 2 the weights on rank",
    "data": "ValueError: data is '89 samples of shape",
    "labels": "ValueError: data is '90 samples of shape",
    "clip_norm": "ValueError: clip_norm is 1.0 on rank",
    "alone": "this one join_shards, and another one ",
    "no folder": "Error: ",
}
STOPS = {"stop": "enough", "SIGTERM": "terminated", "SIGINT": "interrupted"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run all ways by one start of three ranks; return the folder, and how each way ended."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, run_jobs(3, folder, {way: ("failing", way) for way in (*ERRORS, *STOPS, "full")})


def steps_in(folder):
    return nf.load_checkpoint(folder / "checkpoint").optimizer.steps


@pytest.mark.parametrize("way", ERRORS)
def test_an_error_on_one_rank_ends_all_with_one_message(runs, way):
    folder, ended = runs
    (message,) = [error for error in ended[way] if not error.startswith("RankFailed")]
    assert all(ended[way])
    assert ERRORS[way] in message
    assert " of 3." in message  # This is rank 1 of 3.
    if way == "nan":
        assert "is the input x on rank" in message
    if way == "callback":
        assert "This is rank 2 of 3." in message
        assert steps_in(folder / way) == 6  # of the first epoch


@pytest.mark.parametrize("way", STOPS)
def test_all_ranks_stop_after_the_same_step(runs, way):
    folder, ended = runs
    assert ended[way] == [""] * 3
    ends = [json.loads((folder / way / f"{k}.json").read_text()) for k in range(3)]
    assert ends == [{"stopped": STOPS[way], "steps": 8, "said": []}] * 3
    assert steps_in(folder / way) == 8


def test_a_full_disk_is_a_warning(runs):
    folder, ended = runs
    assert ended["full"] == [""] * 3
    warnings = json.loads((folder / "full" / "0.json").read_text())["said"]
    assert warnings
    assert all("could not be written" in warning for warning in warnings)


def test_a_full_disk_leaves_the_last_checkpoint_whole(runs):
    assert steps_in(runs[0] / "full") == 6


def test_nothing_is_left_of_ranks_of_which_one_failed(tmp_path):
    process = run_ranks(4, "failing", tmp_path, "callback", timeout=30, fails=True)
    assert process.stderr.count("Error: ") == 1, process.stderr
    assert "This is rank 3 of 4." in process.stderr
    assert "Abort" not in process.stderr
