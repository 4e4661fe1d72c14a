"""Moments of Adam that are shared out over ranks, in `fit`: memory, and what is given back."""

import json
import sys

import numpy as np
import pytest

import npformer as nf
from tests.training.common import calling
from tests.training.distributed.fake_ranks import run_threads
from tests.training.distributed.ranks import needs_mpi, run_ranks
from tests.training.distributed.train import model_of, samples


@needs_mpi
@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from Linux")
def test_the_peak_of_memory_falls(tmp_path):
    peaks = []
    for shard in (0, 1):
        (tmp_path / str(shard)).mkdir()
        run_ranks(2, "memory", tmp_path / str(shard), shard)
        files = [tmp_path / str(shard) / f"{k}.json" for k in range(2)]
        megabytes = [json.loads(file.read_text()) for file in files]
        peaks.append(max(megabytes_of_rank["peak"] for megabytes_of_rank in megabytes))
    saved = megabytes[0]["parameters"]  # half of both moments
    assert peaks[0] - peaks[1] > 0.75 * saved, (peaks, saved)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_optimizer_has_its_moments_again_after_a_training(n):
    def train(ranks, shard):
        model = model_of("attention")
        optimizer = nf.Adam(model.parameters(), lr=3e-3)
        settings = {"epochs": 2, "batch_size": 16, "workers": 1, "progress": False}
        settings |= {"optimizer": optimizer, "communicator": ranks, "shard_moments": shard}
        nf.fit(model, samples(), **settings)
        arrays = optimizer.state()[1]
        assert all(np.any(x) for x in arrays.values())
        return {name: x.tobytes() for name, x in {**arrays, **model.parameters()}.items()}

    def work(ranks):
        assert train(ranks, True) == train(ranks, False)

    run_threads(n, work)


def test_a_callback_that_needs_gradients_is_refused(small_model, token_batch):
    x, y, mask = token_batch
    read = calling("before_update", lambda state: state.gradients["classify.bias"])
    with pytest.raises(ValueError, match=r"shard_moments is True and .*has before_update"):
        nf.fit(small_model(), (x, y, mask), callbacks=[read], shard_moments=True)
