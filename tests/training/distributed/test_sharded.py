"""Moments of Adam that are shared out over ranks: the same bits, and a part of the memory."""

import json
import sys
import time

import pytest

import npformer as nf
from tests.training.distributed.ranks import needs_mpi, run_ranks
from tests.training.distributed.test_equal import assert_equal, trained

pytestmark = pytest.mark.processes

FEW = {"mixers": ["attention", "fourier"], "epochs": 4}


def assert_same_bits(found, expected):
    for mixer, (weights, history) in expected.items():
        for name, value in weights.items():
            assert found[mixer][0][name].tobytes() == value.tobytes(), (mixer, name)
        assert found[mixer][1]["validation_loss"] == history["validation_loss"]


@needs_mpi
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("no_decay", [[], ["*.bias"]], ids=["", "no_decay"])
def test_the_same_bits_as_without(n, no_decay, tmp_path):
    settings = FEW | {"no_decay": no_decay, "weight_decay": 0.1, "clip_norm": 0.5}
    whole = trained(n, tmp_path / "whole", **settings)
    assert_same_bits(trained(n, tmp_path / "own", shard_moments=True, **settings), whole)


@needs_mpi
@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 0), (0, 3), (2, 2)])
def test_a_checkpoint_goes_on_with_other_shards(before, after, tmp_path):
    expected = trained(0, tmp_path / "undisturbed", **FEW | {"epochs": 5})
    settings = FEW | {"checkpoint": "run", "shard_moments": True}
    trained(before, tmp_path / "begun", **settings | {"epochs": 2})
    found = trained(after, tmp_path / "ended", **settings | {"epochs": 5, "resume": True})
    assert_equal(found, expected)


@needs_mpi
@pytest.mark.parametrize("n", [2, 4])
def test_memory_of_the_moments_is_divided(n, tmp_path):
    run_ranks(n, "shards", tmp_path)
    found = [json.loads((tmp_path / f"{k}.json").read_text()) for k in range(n)]
    entries = found[0]["entries"]
    assert sum(each["moments"] for each in found) == 2 * 8 * entries
    assert max(each["moments"] for each in found) <= 2 * 8 * (entries // n + 1)
    assert {each["given_back"] for each in found} == {2 * 8 * found[0]["parameters"]}
    assert all(each["as_before"] for each in found)
    assert all("holds NaN" in each["error"] for each in found)


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from Linux")
@pytest.mark.parametrize("n", [2, 4])
def test_the_peak_of_memory_falls(n, tmp_path):
    peaks = []
    for shard in (0, 1):
        (tmp_path / str(shard)).mkdir()
        print(run_ranks(n, "memory", tmp_path / str(shard), shard).stdout)
        files = [tmp_path / str(shard) / f"{k}.json" for k in range(n)]
        found = [json.loads(file.read_text()) for file in files]
        peaks.append(max(each["peak"] for each in found))
    saved = 2 * found[0]["parameters"] * (1 - 1 / n)
    assert peaks[0] - peaks[1] > 0.75 * saved, (peaks, saved)


@needs_mpi
@pytest.mark.parametrize("n", [2, 4])
def test_a_rank_that_asks_for_the_state_alone_is_told(n, tmp_path):
    began = time.monotonic()
    done = run_ranks(n, "failing", tmp_path, "alone", fails=True)
    assert time.monotonic() - began < 10
    assert done.stderr.count("Error: ") == 1
    assert "this one join_shards, and another one " in done.stderr


def test_a_callback_that_needs_gradients_is_refused(small_model, token_batch):
    class Reads(nf.Callback):
        def before_update(self, state):
            state.gradients["classify.bias"]

    x, y, mask = token_batch
    with pytest.raises(ValueError, match=r"shard_moments is True and .*has before_update"):
        nf.fit(small_model(), (x, y, mask), callbacks=[Reads()], shard_moments=True)


def test_one_rank_has_all(small_model, token_batch):
    x, y, mask = token_batch
    models = [small_model() for _ in range(2)]
    for model, sharded in zip(models, (False, True), strict=True):
        nf.fit(model, (x, y, mask), epochs=2, shard_moments=sharded, progress=False)
    one, other = (model.parameters().flat.tobytes() for model in models)
    assert one == other
