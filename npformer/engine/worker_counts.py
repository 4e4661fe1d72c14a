"""How many workers share a batch, or how many threads share one worker's calls.

Workers share samples: each computes a part of the batch with one BLAS thread, so everything in a
step runs in parallel and not only the matrix products. If there are fewer samples than cores, and
they are long, threads share the calls of one worker instead: the rows of a product, the heads of
attention (`EngineContext.map_slices`).
"""

from numbers import Integral

from npformer.core import cores, describe
from npformer.core.dispatch import enabled
from npformer.engine.snapshot import Snapshot

# The least cost, in seconds of a training step, from which sharing is worthwhile. A prediction
# takes less time than a step, but its calls are shorter too, so the same numbers hold.

THREAD_SECONDS = 0.0025
"""For workers, which wait for the interpreter between calls."""

THREAD_TOKENS = 384
"""Least number of tokens for a worker: in a large model, fewer make calls too short."""

PAIR_SECONDS = 0.05
"""For threads that share calls: the cost of pairs of tokens. It must also be a third of the whole
cost: BLAS shares products with weights well, but not exponentials."""


def check_workers(workers: object) -> None:
    """Raise ValueError unless `workers` is a number of workers, or "auto"."""
    if isinstance(workers, str) and workers == "auto":
        return
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(
            f"workers is {describe(workers)}; expected a whole number of at least 1 or 'auto'"
        )


def choose_workers(
    workers: int | str, backend: str, samples: int, tokens: int, seconds: float
) -> int:
    """Return how many workers share a batch: `workers`, but at most one per sample.

    "auto" means one for each core that gets enough work, and 1 on a GPU. Raises ValueError for
    anything else, and for more than one worker on a GPU.
    """
    check_workers(workers)
    if workers == "auto":
        most = min(samples, int(min(seconds / THREAD_SECONDS, tokens / THREAD_TOKENS)))
        if most < 2 or backend != "numpy":
            return 1
        return min(cores(), most)
    workers = int(workers)
    if workers > 1 and backend != "numpy":
        raise ValueError(
            f"workers is {workers} on backend {backend!r}; expected 1, because workers are CPU "
            "threads. Use workers='auto' to leave the choice to npformer"
        )
    return max(1, min(workers, samples))


def choose_threads(
    workers: int | str, snapshot: Snapshot, backend: str, samples: int, length: int
) -> int:
    """Return how many threads share the calls of one worker; 1 if workers share the batch instead.

    More than 1 for a few long sequences on many cores, where workers would leave at least half of
    the cores idle. `workers` is the largest number of threads, or "auto".
    """
    cost = snapshot.cost
    pairs = samples * length * length * cost.pair
    if pairs < PAIR_SECONDS or 2 * length * cost.pair < cost.token or backend != "numpy":
        return 1
    most = cores() if workers == "auto" else int(workers)
    if 2 * samples > most or not enabled():
        return 1
    return most if snapshot.splits_calls else 1
