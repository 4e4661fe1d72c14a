"""Worker threads: a batch in parts, each with its own gradients, summed at the end.

NumPy releases the interpreter lock while it computes, so on a CPU everything runs in parallel this
way, not only the matrix products. Each worker holds BLAS to one thread; two libraries that both
spread over all cores only stand in each other's way.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Protocol, Self

import numpy as np

from npformer.backend import Array, array_module
from npformer.module import Context, Gradients, Layer, Workspace


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


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks through the loaded libraries: once is enough


def choose(workers: int | str, model: Layer, batch: int, tokens: int) -> int:
    """Return how many threads a batch is worth.

    Parameters
    ----------
    workers : int or "auto"
        A number is taken as it is, up to one sample a worker.
    model : Layer
    batch : int
        Samples.
    tokens : int
        Samples times length.

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
        # Forward and backward cost about 6 operations a parameter and token. Under some 5 ms of
        # work, or 4 samples each, a second thread costs more than it brings.
        seconds = 6.0 * model.n_parameters() * tokens / 100e9
        if on_gpu or seconds < 0.005:
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
        generator: np.random.Generator | None,
        label_smoothing: float = 0.0,
    ) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients.

        Parameters
        ----------
        x, y, mask : array
            As the model takes them.
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
        n = choose(self.workers, self.model, len(x), x.shape[0] * x.shape[1])
        while len(self._gradients) < n:
            self._gradients.append(Gradients(self.model))
            self._workspaces.append(Workspace())
        generators = [generator] if n == 1 or generator is None else generator.spawn(n)
        total = float(max(counts.sum(), 1)) if n > 1 else 1.0

        def part(k: int) -> Array:
            rows = slice(k * len(x) // n, (k + 1) * len(x) // n)
            gradients, workspace = self._gradients[k], self._workspaces[k]
            gradients.zero()
            workspace.reset()
            context = Context(
                training=True,
                generator=generators[k] if len(generators) > 1 else generators[0],
                mask=None if mask is None else mask[rows],
                workspace=workspace,
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
            return part(0), self._gradients[0]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(n, thread_name_prefix="npformer")
        with _blas().limit(limits=1, user_api="blas") if n > 1 else nullcontext():
            losses = list(self._pool.map(part, range(n)))
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses)), summed
