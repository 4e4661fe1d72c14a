"""A team of workers, threads: each computes some samples of a batch, and gradients are summed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

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
from npformer.engine.blas import one_blas_thread
from npformer.engine.context import EngineContext
from npformer.engine.fast_losses import fast_loss
from npformer.engine.fast_models import above_frozen
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
"""Tokens that a worker on a CPU predicts at a time. With fewer, Python's overhead shows; with more,
one layer's results no longer fit into the cache when the next layer reads them."""


class MicroBatch(NamedTuple):
    """The samples that a worker computes at a time, and what it needs to know about them."""

    batch: Batch
    weight: float = 1.0
    """How much their mean loss counts in that of the whole batch."""
    first: int = 0
    """The number of the first of them in the whole batch."""
    cut: Cut | None = None
    """Padding that the whole batch has and they do not."""


@dataclass(eq=False)
class Team:
    """Workers that share a model's steps and predictions.

    Parameters
    ----------
    model : Layer
    workers : int or "auto"
        How many.
    micro_batch : int, optional
        Samples that a worker computes at a time, to limit its memory; None: all that it has.
    workspaces : list of Workspace, optional
        Memory that outlives this team, one for each worker; missing ones are added.
    loss : Loss, optional
        What `step` computes the gradients of; the model's own if not given.
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
    _gradients: list[Gradients] = field(default_factory=list, init=False)
    _layout: Any = field(default=None, init=False)
    _used: dict[int, Gradients] = field(default_factory=dict, init=False)  # may no longer be 0

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
        Dropout's masks depend on the `generator` alone, which draws one number; how the batch is
        shared changes only the order of sums. The loss of a rank's shard, and its gradients, are
        its part of the whole batch's mean.
        """
        snapshot = snapshot_of(self.model)
        backend, n, threads, seconds = self._share_work(snapshot, batch)
        self._start(backend, n, snapshot)
        counts, key = self._counts(batch, n), step_key(generator)
        masked, most = snapshot.needs_masks, self.micro_batch
        work = [micro_batches_of_worker(k, n, batch, most, counts, masked) for k in range(n)]
        with guard_computation(backend, len(batch), most or -(-len(batch) // n)):
            alone = one_blas_thread(backend, seconds, threads)
            losses = run_in_workers(
                lambda k: self._accumulate(k, key, work[k], backend, threads), n, alone
            )
        workers = "1 worker" if n == 1 else f"{n} threads"
        self.shared_by = workers if threads == 1 else f"{threads} threads in a call"
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses[1:], losses[0])), summed

    def forward(self, batch: Batch) -> Array:
        """Return the model's results at evaluation; the batch is as in `step`."""
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

        together = len(batch) if at_once is None else min(len(batch), n * at_once)
        with guard_computation(backend, together):
            alone = one_blas_thread(backend, seconds, threads)
            outputs = [
                y for of_worker in run_in_workers(predict_share, n, alone) for y in of_worker
            ]
        if len(outputs) == 1:
            return outputs[0]
        with guard_computation(backend, len(batch)):
            return array_module(outputs[0]).concatenate(outputs)

    def _share_work(self, snapshot: Snapshot, batch: Batch) -> tuple[str, int, int, float]:
        """Return the backend, how many workers share a batch, or threads a call, and its cost."""
        backend, samples, length = snapshot.backend, len(batch), batch.n_tokens
        seconds = snapshot.cost.seconds(samples, length)
        n = choose_workers(self.workers, backend, samples, samples * length, seconds)
        threads = choose_threads(self.workers, snapshot, backend, samples, length)
        return backend, 1 if threads > 1 else n, threads, seconds

    def _counts(self, batch: Batch, n: int) -> np.ndarray | None:
        """Return how much each sample counts; None if the batch is computed as a whole.

        It may wait for labels on a GPU.
        """
        at_once = self.micro_batch or len(batch)
        if batch.shard is None and n == 1 and at_once >= len(batch):
            return None
        return np.asarray(batch.counts_for(self.loss) if batch.counts is None else batch.counts)

    def _accumulate(
        self, k: int, key: Any, work: list[MicroBatch], backend: str, threads: int
    ) -> Array:
        """Put the gradients of micro-batches into worker k's; return their part of the loss."""
        model = above_frozen(twin_on(backend, self.model, of_data=True))
        gradients, total, memory = self._gradients[k], 0.0, self._memory(k)
        if self._used.get(k) is gradients:
            gradients.zero()
        self._used[k] = gradients
        # An overflow still shows in the loss, where `fit` finds it and names the tensor.
        with np.errstate(over="ignore", invalid="ignore"):
            for batch, weight, first, cut in work:
                drawn = partial(part_generator, key, first, len(batch), cut)
                context = EngineContext(True, drawn, workspace=memory, threads=threads)
                loss = fast_loss(self.loss, backend, context)
                total = total + accumulate(model, loss, batch, context, gradients, weight)
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
    k: int, n: int, batch: Batch, most: int | None, counts: np.ndarray | None, masked: bool
) -> list[MicroBatch]:
    """Return what worker k of n computes, at most `most` samples at a time.

    `counts` says how much each sample counts in the loss; None: the batch is computed as a whole.
    Unless `masked`, samples without padding lose their mask.
    """
    if counts is None:
        return [MicroBatch(batch if masked else drop_full_mask(batch))]
    shard, rows = batch.shard, list(rows_of_worker(k, n, len(batch), most))
    rows_together = batch.select(slice(rows[0].start, rows[-1].stop))
    rows_together = rows_together if masked else drop_full_mask(rows_together)
    total = (float(counts.sum()) if shard is None else shard.total) or 1.0
    before, cut = 0, None
    if shard is not None:
        here, before = tuple(sequences.length for sequences in rows_together.inputs), shard.first
        cut = None if shard.lengths in (None, here) else Cut(here, shard.lengths)
    micro_batches, first = [], rows[0].start
    for of_batch in rows:
        if of_batch.start == of_batch.stop:
            continue  # there are fewer samples than workers
        micro_batch = rows_together
        if len(rows) > 1:
            micro_batch = micro_batch.select(slice(of_batch.start - first, of_batch.stop - first))
        weight = float(counts[of_batch].sum()) / total
        micro_batches.append(MicroBatch(micro_batch, weight, before + of_batch.start, cut))
    return micro_batches


def rows_of_worker(k: int, n: int, n_rows: int, most: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, at most `most` at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    size = max(stop - start, 1) if most is None else most
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))


def drop_full_mask(batch: Batch) -> Batch:
    """Return a batch without its mask if no token is padding, as is common in batches by length.

    Then layers need not look at a mask, which takes a few per cent of a short step.
    """
    if not any(_has_full_mask(sequences) for sequences in batch.inputs):
        return batch
    inputs = [replace(e, padding=None) if _has_full_mask(e) else e for e in batch.inputs]
    return replace(batch, inputs=tuple(inputs))


def _has_full_mask(sequences: Sequences) -> bool:
    padding = sequences.padding
    return padding is not None and type(padding.mask) is np.ndarray and bool(padding.mask.all())
