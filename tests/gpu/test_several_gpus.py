"""A rank on each GPU, joined by NCCL; and two ranks that share one, joined by the host."""

import numpy as np
import pytest

from npformer.core import asarray, get_backend, to_numpy
from npformer.training.distributed import Communicator
from npformer.training.distributed.nccl import connect
from tests.gpu import require_gpu
from tests.needs import NEEDS
from tests.training.distributed.ranks import assert_ended_well, needs_mpi, run_jobs
from tests.training.distributed.test_devices import EVERY
from tests.training.distributed.test_equal import assert_equal
from tests.training.distributed.train import results

require_gpu()


def test_nccl_leaves_the_arrays_of_a_single_rank_as_they_are() -> None:
    backend = get_backend("cupy")
    if not backend.link().nccl.available:
        pytest.skip("NCCL is not installed: python -m pip install 'npformer[nccl13]'")
    gpus = connect(backend, Communicator())
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(0).normal(size=1001).astype(dtype)
        there = asarray(x, "cupy")
        gpus.broadcast(there)
        gpus.reduce_scatter(there, [slice(0, 1001)])
        gpus.all_gather(there, [slice(0, 1001)])
        np.testing.assert_array_equal(to_numpy(there), x)


@needs_mpi
@pytest.mark.parametrize("shard", [False, True])
def test_two_ranks_end_as_one_process(tmp_path, shard) -> None:
    cupy = pytest.importorskip("cupy", reason=NEEDS["cupy"])
    few = EVERY | {"mixers": ["attention", "fourier"]}
    assert_ended_well(run_jobs(0, tmp_path, {"alone": ("train", few | {"validate": False})}))
    jobs = {"both": ("devices", "cupy", few | {"shard_moments": shard})}
    assert_ended_well(run_jobs(2, tmp_path, jobs))
    job_results = results(tmp_path / "both")
    assert_equal(job_results, results(tmp_path / "alone"), bound=1e-9)
    (first, _) = job_results["attention"][1]["warnings"]
    has_several_gpus = cupy.cuda.runtime.getDeviceCount() > 1
    assert [message for message in first if "share the GPU" in message] == (
        [] if has_several_gpus else first
    )
