"""What tests of the engine share."""

import os
import sys
import threading
from unittest.mock import Mock

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from npformer import Adam
from npformer.engine import processes
from npformer.engine.team import Team

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")


def blas_threads():
    """Return how many threads NumPy's BLAS has; SciPy may bring another, which nobody calls."""
    found = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    of_numpy = [entry for entry in found if "numpy" in entry["filepath"]]
    return [entry["num_threads"] for entry in of_numpy or found]


def in_threads(n, call):
    """Run call(0), ..., call(n - 1) in threads of their own."""
    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def trained(model, n_workers, micro_batch=None, processes=False):
    """Return a model's weights, as one array, after some steps with dropout."""
    rng, generator = np.random.default_rng(1), np.random.default_rng(2)
    optimizer = Adam(model.parameters(), lr=1e-2)
    with Team(model, n_workers, micro_batch, processes=processes) as team:
        for _ in range(4):
            x, y = rng.integers(0, 7, (9, 24)), rng.integers(0, 3, 9)
            mask = np.arange(24) < rng.integers(1, 25, 9)[:, None]
            _, gradients = team.step(model.batch(x, y, mask), generator=generator)
            optimizer.step(gradients)
    return model.parameters().flat.copy()


def refuse_fork(monkeypatch):
    """Let the system refuse every new process; return the mock that counts the attempts."""
    fork = Mock(side_effect=BlockingIOError("Resource temporarily unavailable"))
    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(processes, "refused", False)
    return fork


def refuse_memory(monkeypatch):
    """Let the system have no memory to share."""
    monkeypatch.setattr("mmap.mmap", Mock(side_effect=OSError(12, "Cannot allocate memory")))
