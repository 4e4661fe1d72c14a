"""What tests of the engine share."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from npformer import Adam
from npformer.engine.team import Team


def blas_threads():
    """Return how many threads NumPy's BLAS has; SciPy may bring another, which nobody calls."""
    libraries = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    numpy_libraries = [entry for entry in libraries if "numpy" in entry["filepath"]]
    return [entry["num_threads"] for entry in numpy_libraries or libraries]


def run_in_threads(n, call):
    """Run call(0), ..., call(n - 1) in threads of their own."""
    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def train(model, n_workers, micro_batch=None):
    """Return a model's weights, as one array, after some steps with dropout."""
    rng, generator = np.random.default_rng(1), np.random.default_rng(2)
    optimizer = Adam(model.parameters(), lr=1e-2)
    with Team(model, n_workers, micro_batch) as team:
        for _ in range(4):
            x, y = rng.integers(0, 7, (9, 24)), rng.integers(0, 3, 9)
            mask = np.arange(24) < rng.integers(1, 25, 9)[:, None]
            _, gradients = team.step(model.batch(x, y, mask), generator=generator)
            optimizer.step(gradients)
    return model.parameters().flat.copy()
