"""How many workers share a batch, how many threads share a call, and whether workers are processes.

Workers share samples: each computes a part of the batch with one BLAS thread, so everything in a
step runs in parallel and not only the matrix products. If there are fewer samples than cores, and
they are long, threads share the calls of one worker instead: the rows of a product, the heads of
attention (`EngineContext.in_parts`).
"""

from numbers import Integral

from npformer.core import Layer, cores, described
from npformer.core.dispatch import enabled
from npformer.engine import processes
from npformer.engine.processes import processes_on_the_cores
from npformer.engine.snapshot import Snapshot, snapshot_of

# The least cost, in seconds of a training step, for which sharing is worth it. A prediction takes
# less time than a step, but its calls are shorter too, so the same numbers serve.

COPY_SECONDS = 0.001
"""For a worker that is a copy of this process: it exchanges one message per step."""

THREAD_SECONDS = 0.0025
"""For a worker that is a thread: it waits for the interpreter between calls."""

THREAD_TOKENS = 384
"""Least tokens of a worker that is a thread: in a large model, fewer make calls too short."""

PAIR_SECONDS = 0.05
"""For threads that share calls: the cost of pairs of tokens. It must also be a third of the whole
cost: BLAS shares products with weights well, but not exponentials."""

COPIES_FROM_SECONDS = 0.15
"""For a prediction that costs less, "auto" makes no copies: making them takes too long."""

COPIES_FROM_TOKENS = 1 << 15
"""Nor for a prediction of fewer tokens than this. If so few cost as much, the model is large: its
calls are few and long, and threads hardly wait for the interpreter."""


def check_workers(workers: object) -> None:
    """Raise ValueError unless `workers` is a number of workers, or "auto"."""
    if isinstance(workers, str) and workers == "auto":
        return
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(
            f"workers is {described(workers)}; expected a whole number of at least 1 or 'auto'"
        )


def check_processes(asked: object) -> None:
    """Raise ValueError unless `asked` is True, False or "auto"."""
    if not isinstance(asked, bool) and not (isinstance(asked, str) and asked == "auto"):
        raise ValueError(f"processes is {described(asked)}; expected True, False or 'auto'")


def choose_workers(
    workers: int | str,
    backend: str,
    samples: int,
    tokens: int,
    seconds: float,
    processes: bool = False,
) -> int:
    """Return how many workers share a batch: the number given, but at most one per sample.

    "auto" is one for each core that gets enough to do; copies of the process (`processes`) need
    less than threads. It is 1 on a GPU, or if other processes share the cores. Raises ValueError
    for anything else, and for more than one worker on a GPU.
    """
    check_workers(workers)
    if workers == "auto":
        if processes:
            worth = seconds / COPY_SECONDS
        else:
            worth = min(seconds / THREAD_SECONDS, tokens / THREAD_TOKENS)
        most = min(samples, int(worth))
        if most < 2 or processes_on_the_cores() > 1 or backend != "numpy":
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
    if 2 * samples > most or processes_on_the_cores() > 1 or not enabled():
        return 1
    return most if snapshot.in_parts else 1


def wants_copies(asked: bool | str, model_fits: bool) -> bool:
    """Return whether workers are copies of this process; they can be only if `model_fits`.

    Raises ValueError if `asked` is True but copies are impossible, or if it is neither True, False
    nor "auto".
    """
    check_processes(asked)
    if asked is False:
        return False
    possible = model_fits and processes.possible(asked_for=asked is True)
    if asked is True and not possible:
        raise ValueError(
            "processes is True; expected False or 'auto' here. Worker processes are copies of this "
            "one, which need Linux, a Python with mmap and pipes, its main thread, and a model on "
            "backend 'numpy' whose trained parameters lie in one buffer (flatten); a daemonic "
            "process of a pool cannot make them"
        )
    return possible and (asked is True or not processes.refused)


def choose_processes(asked: bool | str, model: Layer, samples: int, length: int) -> int:
    """Return how many processes share a prediction; 1 is this one alone, which may use threads.

    True means one for each core, and so does "auto" if copies are possible and worthwhile. Raises
    ValueError as `wants_copies` does.
    """
    check_processes(asked)
    tokens = samples * length
    if asked == "auto" and tokens < COPIES_FROM_TOKENS:  # first, because most predictions are short
        return 1
    snapshot, backend = snapshot_of(model), model.backend
    seconds = snapshot.cost.seconds(samples, length)
    if asked == "auto" and (
        seconds < COPIES_FROM_SECONDS
        or choose_threads("auto", snapshot, backend, samples, length) > 1
    ):
        return 1
    if not wants_copies(asked, model_fits=backend == "numpy"):
        return 1
    workers = "auto" if asked == "auto" else cores()
    return choose_workers(workers, backend, samples, tokens, seconds, processes=True)
