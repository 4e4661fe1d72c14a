"""Ranks train any model: three from outside, with one input and with two."""

import numpy as np
import pytest

from tests.training.distributed.ranks import needs_mpi, run_ranks
from tests.training.trainable.outside import MODELS

pytestmark = [pytest.mark.processes, needs_mpi]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Train with one process, with 2 and with 3 ranks; return the folders."""
    folders = {n: tmp_path_factory.mktemp(f"ranks-{n}") for n in (0, 2, 3)}
    for n, folder in folders.items():
        run_ranks(n, "outside", folder)
    return folders


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_ranks_end_as_one_process_and_alike(runs, name, n):
    alone = np.load(runs[0] / f"{name}-0.npz")
    first = np.load(runs[n] / f"{name}-0.npz")
    for part in ("weights", "train_loss", "validation_loss"):
        np.testing.assert_allclose(first[part], alone[part], rtol=1e-12, atol=1e-12)
        for rank in range(1, n):
            other = np.load(runs[n] / f"{name}-{rank}.npz")
            np.testing.assert_array_equal(other[part], first[part])
