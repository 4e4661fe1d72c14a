"""Worker threads: a batch in parts, each with its own gradients, summed at the end.

NumPy releases the interpreter lock while it computes, so on a CPU everything runs in parallel this
way, not only the matrix products. Each worker holds BLAS to one thread; two libraries that both
spread over all cores only stand in each other's way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from npformer.backend import Array, array_module, backend_of
from npformer.module import Context, Gradients, Layer
from npformer.workspace import Workspace

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Trainable(Protocol):
    """What a worker needs of a model."""

    def accumulate(
        self,
        x: Array,
        y: Array,
        context: Context,
        gradients: Gradients,
        *,
        weight: float,
        label_smoothing: float,
    ) -> Array:
        """Add the gradients of ``weight * loss`` and return ``weight * loss``."""


class _OneBlasThread:
    """Holds BLAS to one thread while anyone is inside; the limit is the process's, so they count.

    Whoever enters first sets it and whoever leaves last puts back what was there before. Without
    the count, two threads that overlap would each restore what the other had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                if self._controller is None:  # looks through the loaded libraries: once is enough
                    from threadpoolctl import ThreadpoolController

                    self._controller = ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


def _spread(numbers: Iterator[int], n: int) -> None:
    """Give this thread every n-th core of those that the process may use.

    Threads that wait for each other in turn, as threads of one interpreter do, are woken on one
    core by Linux again and again, and then run one after another.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= n:
            os.sched_setaffinity(0, cores[next(numbers) % n :: n])  # 0: this thread alone


def work(model: Layer, tokens: int) -> float:
    """Return about how many seconds one core needs for a training step.

    Forward and backward cost about 6 operations a parameter and token, at about 100 GFLOP/s.
    """
    return 6.0 * model.n_parameters() * tokens / 100e9


SMALL = 0.005
"""Seconds of work below which a second thread, ours or BLAS's, costs more than it brings."""


def one_blas_thread(model: Layer, seconds: float) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread while a small model computes on the CPU; else change nothing.

    A product of two small matrices is over before a second thread has woken up, and on a busy
    machine the first one then waits for it. The limit that was there before comes back at the end.

    Parameters
    ----------
    model : Layer
    seconds : float
        From `work`.
    """
    if model.backend != "numpy" or seconds >= SMALL:
        return nullcontext()
    return _ONE_BLAS_THREAD


def choose(workers: int | str, model: Layer, batch: int, seconds: float) -> int:
    """Return how many threads a batch is worth.

    Parameters
    ----------
    workers : int or "auto"
        A number is taken as it is, up to one sample a worker. "auto" gives each core a share of at
        least 4 samples, and a small model one thread.
    model : Layer
    batch : int
        Samples.
    seconds : float
        From `work`.

    Returns
    -------
    n : int

    Raises
    ------
    ValueError
        Not a number from 1 nor "auto", or more than one on a GPU.
    """
    on_gpu = model.backend != "numpy"
    if workers == "auto":
        if on_gpu or seconds < SMALL:
            return 1
        return max(1, min(os.cpu_count() or 1, batch // 4))
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise ValueError(f"workers is {workers!r}; expected a whole number of at least 1 or 'auto'")
    if on_gpu and workers > 1:
        raise ValueError(
            f"workers is {workers} on backend {model.backend!r}; expected 1, for workers are CPU "
            "threads. Use workers='auto' to leave the choice to npformer"
        )
    return min(workers, batch)


class Team:
    """Threads that share a model, and what each of them needs for itself.

    Parameters
    ----------
    model : Layer
        With the method `accumulate`.
    workers : int or "auto"
        Threads.
    """

    def __init__(self, model: Any, workers: int | str = 1) -> None:
        self.model = model
        self.workers = workers
        self._seconds_a_token = work(model, 1)
        self._pool: ThreadPoolExecutor | None = None
        self._gradients: list[Gradients] = []
        self._workspaces: list[Workspace] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def step(
        self,
        x: Array,
        y: Array,
        mask: Array | None,
        *,
        types: Array | None = None,
        generator: np.random.Generator | None,
        label_smoothing: float = 0.0,
    ) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients.

        Parameters
        ----------
        x, y, mask : array
            As the model takes them.
        types : int array, shape (batch, length), optional
            Types of the tokens; all 0 if not given.
        generator : numpy.random.Generator or None
            For dropout. With several workers each gets a child of its own, so a run repeats bit
            for bit as long as their number stays the same.
        label_smoothing : float

        Returns
        -------
        loss : array of no axes
            On the model's backend: reading it on a GPU waits for the device.
        gradients : Gradients
            This team's own; the next step overwrites them.
        """
        x, y, mask, counts = self.model.prepare_batch(x, y, mask)
        if types is not None:
            types = self.model.prepare_types(types, x)
        seconds = self._seconds_a_token * x.shape[0] * x.shape[1]
        n = choose(self.workers, self.model, len(x), seconds)
        if self._gradients and backend_of(g=self._gradients[0].flat).name != self.model.backend:
            self._gradients.clear()  # the model moved since the last step
            self._workspaces.clear()
        while len(self._gradients) < n:
            self._gradients.append(Gradients(self.model))
            self._workspaces.append(Workspace())
        generators = [generator] * n if n == 1 or generator is None else generator.spawn(n)
        total = float(max(counts.sum(), 1)) if n > 1 else 1.0

        def part(k: int) -> Array:
            rows = slice(k * len(x) // n, (k + 1) * len(x) // n)
            gradients, workspace = self._gradients[k], self._workspaces[k]
            gradients.zero()
            workspace.tidy()
            context = Context(
                training=True,
                generator=generators[k],
                mask=None if mask is None else mask[rows],
                workspace=workspace,
                types=None if types is None else types[rows],
            )
            # Overflow is not hushed up: `fit` looks at the loss and names the tensor.
            with np.errstate(over="ignore", invalid="ignore"):
                return self.model.accumulate(
                    x[rows],
                    y[rows],
                    context,
                    gradients,
                    weight=float(counts[rows].sum()) / total if n > 1 else 1.0,
                    label_smoothing=label_smoothing,
                )

        if n == 1:
            with one_blas_thread(self.model, seconds):
                return part(0), self._gradients[0]
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # here, not above: it brings logging

            self._pool = ThreadPoolExecutor(
                n, thread_name_prefix="npformer", initializer=_spread, initargs=(count(), n)
            )
        with _ONE_BLAS_THREAD:
            losses = list(self._pool.map(part, range(n)))
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses)), summed
