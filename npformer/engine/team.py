"""A team of workers: threads that compute some samples of a batch each, and sum gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from npformer.core import (
    Array,
    Gradients,
    Layer,
    array_module,
    backend_of,
    checks,
    guard_computation,
    part_generator,
    step_key,
)
from npformer.core.cut_masks import Cut
from npformer.core.inputs import Sequences
from npformer.engine.above_frozen import skip_frozen_layers
from npformer.engine.blas import one_blas_thread
from npformer.engine.context import EngineContext
from npformer.engine.fast_losses import fast_loss
from npformer.engine.fast_outputs import accumulate_by_rows, computes_by_rows
from npformer.engine.snapshot import Snapshot, snapshot_of
from npformer.engine.threads import run_in_workers
from npformer.engine.twin_classes import model_cache
from npformer.engine.twins import twin_on
from npformer.engine.worker_counts import check_workers, choose_threads, choose_workers
from npformer.engine.workspace import Workspace
from npformer.models import accumulate
from npformer.models.batch import Batch
from npformer.models.losses import Loss

PREDICTED_AT_ONCE = 1 << 11
"""Tokens that a worker on a CPU predicts at a time. With fewer, Python's overhead becomes visible;
with more, a layer's outputs no longer fit into the cache when the next layer reads them."""


class MicroBatch(NamedTuple):
    """The samples that a worker computes at a time, and what it needs to know about them."""

    batch: Batch
    weight: float = 1.0
    """The factor of their mean loss in the mean loss of the whole batch."""
    first: int = 0
    """The index of the first sample in the whole batch."""
    cut: Cut | None = None
    """Padding of the whole batch that these samples do not have."""


@dataclass(eq=False)
class Team:
    """Workers that share a model's steps and predictions.

    Parameters
    ----------
    model : Layer
    workers : int or "auto"
        Number of workers.
    micro_batch : int, optional
        Samples that a worker computes at a time, to limit its memory; None: all of its samples.
    workspaces : list of Workspace, optional
        Memory that outlives this team, one for each worker; missing ones are added.
    loss : Loss, optional
        The loss that `step` minimises; by default the model's own.
    shelf : list of lists of Workspace, optional
        Where the workspaces go after a ``with`` statement that raises no error.

    Attributes
    ----------
    shared_by : str
        Who computed the last step: "1 worker", "2 threads" or "2 threads in a call".
    """

    model: Layer
    workers: int | str = 1
    micro_batch: int | None = None
    workspaces: list[Workspace] = field(default_factory=list)
    loss: Any = None
    shelf: list[list[Workspace]] | None = None
    shared_by: str = field(default="", init=False)
    context_class: ClassVar[type[EngineContext]] = EngineContext
    _gradients: list[Gradients] = field(default_factory=list, init=False)
    _layout: Any = field(default=None, init=False)
    _written: dict[int, Gradients] = field(default_factory=dict, init=False)  # may not be 0

    def __post_init__(self) -> None:
        if self.micro_batch is not None:
            checks.positive("micro_batch", self.micro_batch)
        check_workers(self.workers)
        if self.loss is None:
            self.loss = getattr(self.model, "loss", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        # Gradients lie in workspaces, which others may take as soon as they are on the shelf.
        self._gradients, workspaces, self.workspaces = [], self.workspaces, []
        if self.shelf is not None and kind is None:
            self.shelf.append(workspaces)

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients.

        The batch is checked and on the model's backend. The next step overwrites the gradients.
        Dropout's masks depend on the `generator` alone, which draws one number. The number of
        workers changes only the order of sums. For the shard of a rank, loss and gradients are
        those terms of the whole batch's mean that belong to the shard.
        """
        snapshot = snapshot_of(self.model)
        backend, n, threads, seconds = self._share_work(snapshot, batch)
        self._start(backend, n, snapshot)
        counts = self._counts(batch, n)
        key = step_key(generator)
        micro_batches = [
            micro_batches_of_worker(
                k, n, batch, self.micro_batch, counts, needs_masks=snapshot.needs_masks
            )
            for k in range(n)
        ]

        def accumulate_share(k: int) -> Array:
            return self._accumulate(
                k, key, micro_batches[k], backend, threads, backward_once=snapshot.is_stock
            )

        samples_per_worker = -(-len(batch) // n)
        with guard_computation(backend, len(batch), self.micro_batch or samples_per_worker):
            blas_limit = one_blas_thread(backend, seconds, threads)
            losses = run_in_workers(accumulate_share, n, blas_limit)
        workers = "1 worker" if n == 1 else f"{n} threads"
        self.shared_by = workers if threads == 1 else f"{threads} threads in a call"
        total_gradients = self._gradients[0]
        for gradients in self._gradients[1:n]:
            total_gradients.flat += gradients.flat
        loss = array_module(total_gradients.flat).asarray(sum(losses[1:], losses[0]))
        return loss, total_gradients

    def forward(self, batch: Batch) -> Array:
        """Return the model's outputs at evaluation; the batch is as in `step`."""
        snapshot = snapshot_of(self.model)
        backend, n, threads, seconds = self._share_work(snapshot, batch)
        self._start(backend, n)
        at_once = self.micro_batch
        # Threads that share calls take all samples at once: they need many heads to share.
        if at_once is None and backend == "numpy" and threads == 1:
            at_once = max(1, PREDICTED_AT_ONCE // batch.n_tokens)
        model: Any = twin_on(backend, self.model)

        def predict_share(k: int) -> list[Array]:
            context = EngineContext(keep=False, workspace=self._memory(k), threads=threads)
            if n == 1 and (at_once is None or at_once >= len(batch)):
                return [model.forward(*batch.arrays(), batch.within(context))[0]]
            batches = [batch.select(rows) for rows in rows_of_worker(k, n, len(batch), at_once)]
            return [
                model.forward(*micro_batch.arrays(), micro_batch.within(context))[0]
                for micro_batch in batches
            ]

        samples_at_once = len(batch) if at_once is None else min(len(batch), n * at_once)
        with guard_computation(backend, samples_at_once):
            blas_limit = one_blas_thread(backend, seconds, threads)
            outputs: list[Array] = []
            for outputs_of_worker in run_in_workers(predict_share, n, blas_limit):
                outputs += outputs_of_worker
        if len(outputs) == 1:
            return outputs[0]
        with guard_computation(backend, len(batch)):
            return array_module(outputs[0]).concatenate(outputs)

    def _share_work(self, snapshot: Snapshot, batch: Batch) -> tuple[str, int, int, float]:
        """Return the backend, the numbers of workers and of threads per call, and the seconds."""
        backend, samples, length = snapshot.backend, len(batch), batch.n_tokens
        seconds = snapshot.cost.seconds(samples, length)
        n = choose_workers(self.workers, backend, samples, samples * length, seconds)
        threads = choose_threads(self.workers, snapshot, backend, samples, length)
        return backend, 1 if threads > 1 else n, threads, seconds

    def _counts(self, batch: Batch, n: int) -> np.ndarray | None:
        """Return the weight of each sample in the loss; None if the batch is computed as a whole.

        On a GPU this may wait for the labels.
        """
        at_once = self.micro_batch or len(batch)
        if batch.shard is None and n == 1 and at_once >= len(batch):
            return None
        return np.asarray(batch.counts_for(self.loss) if batch.counts is None else batch.counts)

    def _accumulate(
        self,
        k: int,
        key: Any,
        micro_batches: list[MicroBatch],
        backend: str,
        threads: int,
        backward_once: bool,
    ) -> Array:
        """Add the gradients of micro-batches to worker k's; return their part of the loss."""
        model = skip_frozen_layers(twin_on(backend, self.model, of_data=True))
        gradients = self._gradients[k]
        workspace = self._memory(k)
        total = 0.0
        if self._written.get(k) is gradients:
            gradients.zero()
        self._written[k] = gradients
        # `fit` still finds an overflow in the loss, and names the tensor.
        with np.errstate(over="ignore", invalid="ignore"):
            for batch, weight, first, cut in micro_batches:
                generator = partial(part_generator, key, first, len(batch), cut)
                context = self.context_class(
                    True,
                    generator,
                    workspace=workspace,
                    threads=threads,
                    backward_once=backward_once,
                )
                if backend == "numpy" and computes_by_rows(model, self.loss, batch):
                    loss_share = accumulate_by_rows(
                        model, self.loss, batch, context, gradients, weight
                    )
                else:
                    loss = fast_loss(self.loss, backend, context)
                    loss_share = accumulate(model, loss, batch, context, gradients, weight)
                total = total + loss_share
        return total

    def _start(self, backend: str, n: int, snapshot: Snapshot | None = None) -> None:
        """Give each worker memory, and gradients in the layout of a snapshot if there is one."""
        if self._gradients and backend_of(g=self._gradients[0].flat).name != backend:
            self._gradients.clear()  # the model moved since the last step
            self.workspaces.clear()
        while len(self.workspaces) < n:
            self.workspaces.append(Workspace())
        if snapshot is None:
            return
        if self._layout is None or self._layout.named != snapshot.layout.named:
            self._gradients.clear()
        self._layout = snapshot.layout
        while len(self._gradients) < n:
            # Lent, so that the memory is reused once the caller drops the gradients.
            zeros = self.workspaces[len(self._gradients)].zeros if backend == "numpy" else None
            self._gradients.append(Gradients(snapshot.layout, zeros))

    def _memory(self, k: int) -> Workspace:
        self.workspaces[k].tidy()
        return self.workspaces[k]


def team_of(
    model: Layer, workers: int | str, micro_batch: int | None = None, loss: Loss | None = None
) -> Team:
    """Return a `Team` for a ``with`` statement; its workspaces stay with the model afterwards."""
    shelf = model_cache(model).workspaces
    try:
        workspaces = shelf.pop()
    except IndexError:  # this is the first call, or other threads have taken all
        workspaces = []
    return Team(model, workers, micro_batch, workspaces, loss, shelf)


def micro_batches_of_worker(
    k: int,
    n: int,
    batch: Batch,
    size: int | None,
    counts: np.ndarray | None,
    needs_masks: bool,
) -> list[MicroBatch]:
    """Return what worker k of n computes, at most `size` samples at a time.

    `counts` has the weight of each sample in the loss; None: the batch is computed as a whole.
    Unless the model `needs_masks`, samples without padding lose their mask.
    """
    if counts is None:
        return [MicroBatch(batch if needs_masks else drop_full_mask(batch))]
    shard = batch.shard
    row_slices = list(rows_of_worker(k, n, len(batch), size))
    first = row_slices[0].start
    samples = batch.select(slice(first, row_slices[-1].stop))
    if not needs_masks:
        samples = drop_full_mask(samples)
    total = (float(counts.sum()) if shard is None else shard.total) or 1.0
    first_of_shard, cut = 0, None
    if shard is not None:
        first_of_shard = shard.first
        lengths = tuple(sequences.length for sequences in samples.inputs)
        cut = None if shard.lengths in (None, lengths) else Cut(lengths, shard.lengths)
    micro_batches = []
    for rows in row_slices:
        if rows.start == rows.stop:
            continue  # there are fewer samples than workers
        micro_batch = samples
        if len(row_slices) > 1:
            micro_batch = samples.select(slice(rows.start - first, rows.stop - first))
        weight = float(counts[rows].sum()) / total
        micro_batches.append(MicroBatch(micro_batch, weight, first_of_shard + rows.start, cut))
    return micro_batches


def rows_of_worker(k: int, n: int, n_rows: int, size: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, at most `size` at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    if size is None:
        size = max(stop - start, 1)
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))


def drop_full_mask(batch: Batch) -> Batch:
    """Return a batch without masks that keep every token, as is common in batches by length.

    Without a mask to read, layers save a few per cent of a short step.
    """
    if not any(_has_full_mask(sequences) for sequences in batch.inputs):
        return batch
    inputs = tuple(
        replace(sequences, padding=None) if _has_full_mask(sequences) else sequences
        for sequences in batch.inputs
    )
    return replace(batch, inputs=inputs)


def _has_full_mask(sequences: Sequences) -> bool:
    padding = sequences.padding
    return padding is not None and type(padding.mask) is np.ndarray and bool(padding.mask.all())
