"""Workers: each computes a part of a batch with gradients of its own, which are then summed.

Workers are threads or copies of the process; the numbers are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import numpy as np

from npformer.core import (
    Array,
    Gradients,
    Layer,
    array_module,
    backend_of,
    checks,
    explained_memory_error,
    part_generator,
    step_key,
)
from npformer.data.batch import Batch
from npformer.engine.batch_shares import WHOLE, Part, Plan, Share, counts_of, rows_of, share_of
from npformer.engine.blas import one_blas_thread
from npformer.engine.context import EngineContext
from npformer.engine.fast_losses import fast_loss
from npformer.engine.frozen import above_frozen
from npformer.engine.kept_with_model import kept_of
from npformer.engine.processes import CannotCopyError
from npformer.engine.snapshot import Snapshot, observable, snapshot_of
from npformer.engine.team_copies import TeamCopies
from npformer.engine.threads import side_by_side
from npformer.engine.twins import twin_on
from npformer.engine.worker_counts import (
    check_processes,
    check_workers,
    choose_threads,
    choose_workers,
    wants_copies,
)
from npformer.engine.workspace import Workspace
from npformer.models import accumulate
from npformer.models.losses import Loss

Result = TypeVar("Result")

PREDICTED_AT_ONCE = 1 << 11
"""Tokens that a worker on a CPU predicts at a time. With fewer, Python's overhead shows; with more,
one layer's results no longer fit into the cache when the next layer reads them."""


class Team:
    """Workers that share a model's steps and predictions.

    Parameters
    ----------
    model : Layer
    workers : int or "auto"
        How many.
    micro_batch : int, optional
        Samples that a worker computes at a time, to limit its memory; None: its whole share.
    workspaces : list of Workspace, optional
        Memory that outlives this team, one for each worker; missing ones are added.
    processes : bool or "auto"
        Whether the workers of `step` are copies of this process instead of threads. They are made
        when first needed, and again if anything but the trained weights changes. "auto": if copies
        are possible and every change of the model can be seen. It cannot if a user's layer or loss
        has an array or a dict. Workers are threads, too, if a layer sets attributes in each step.
    loss : Loss, optional
        What `step` computes the gradients of; the model's own if not given.

    Attributes
    ----------
    shared_by : str
        Who computed the last step: "1 worker", "2 processes", "2 threads" or "2 threads in a call".

    Raises
    ------
    ValueError
        `processes` is True, but copies are impossible.
    """

    def __init__(
        self,
        model: Layer,
        workers: int | str = 1,
        micro_batch: int | None = None,
        workspaces: list[Workspace] | None = None,
        processes: bool | str = False,
        loss: Loss | None = None,
    ) -> None:
        if micro_batch is not None:
            checks.positive("micro_batch", micro_batch)
        check_workers(workers)
        check_processes(processes)
        self.model = model
        self.workers = workers
        self.micro_batch = micro_batch
        self.loss: Loss | None = getattr(model, "loss", None) if loss is None else loss
        self._processes = processes is not False and wants_copies(
            processes, model_fits=isinstance(model.parameters().flat, np.ndarray)
        )
        self._insist = processes is True
        self._copies: TeamCopies | None = None
        self._changed_itself = 0  # steps in which layers set their own attributes
        self._gradients: list[Gradients] = []
        self._layout: Any = None
        self._used: dict[int, Gradients] = {}  # by worker: those that may no longer be 0
        self._workspaces = [] if workspaces is None else workspaces
        self.shared_by = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()
        self._gradients, self._workspaces = [], []

    def step(
        self,
        batch: Batch,
        *,
        generator: Any = None,
        snapshot: Snapshot | None = None,
        part: Part = WHOLE,
    ) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients.

        The batch is checked and on the model's backend; `snapshot` is the model's, if known. The
        next step overwrites the gradients. Dropout's masks depend on the `generator` alone, which
        draws one number; how the batch is shared changes only the order of sums. `part` says where
        the batch stands in a larger one: the loss returned is its part of the larger one's mean.
        """
        snapshot = snapshot or snapshot_of(self.model)
        if not (self._insist or (snapshot.observable and observable(self.loss))):
            self._processes = False
            self._stop()
        plan = self._plan(snapshot, batch, self._processes)
        backend, n = plan.backend, plan.workers
        self._start(plan, snapshot)
        counts, masked = self._counts(batch, n, part), snapshot.needs_masks
        key = step_key(generator)

        def share(k: int) -> Share:
            return share_of(k, plan, batch, self.micro_batch, counts, key, part, masked)

        at_once = self.micro_batch or -(-len(batch) // n)
        with explained_memory_error(backend, len(batch), at_once):
            if copies := n > 1 and self._processes and self._start_copies(n - 1, snapshot):
                losses = self._run_copies([share(k) for k in range(n)])
            else:
                losses = self._run(plan, lambda k: self._accumulate(k, share(k), backend))
        self.shared_by = plan.in_words(copies)
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses[1:], losses[0])), summed

    def forward(self, batch: Batch, snapshot: Snapshot | None = None) -> Array:
        """Return the model's results at evaluation; arguments as in `step`."""
        snapshot = snapshot or snapshot_of(self.model)
        plan = self._plan(snapshot, batch)
        backend, n = plan.backend, plan.workers
        self._start(plan)
        at_once = self.micro_batch
        # Threads that share calls take all samples at once: they need many heads to share.
        if at_once is None and backend == "numpy" and plan.threads == 1:
            at_once = max(1, PREDICTED_AT_ONCE // batch.n_tokens)
        model: Any = twin_on(backend, self.model)

        def part(k: int) -> list[Array]:
            context = EngineContext(keep=False, workspace=self._memory(k), threads=plan.threads)
            if n == 1 and (at_once is None or at_once >= len(batch)):
                return [model.forward(*batch.arrays(), batch.within(context))[0]]
            some = [batch.of_rows(rows) for rows in rows_of(k, n, len(batch), at_once)]
            return [model.forward(*rows.arrays(), rows.within(context))[0] for rows in some]

        together = len(batch) if at_once is None else min(len(batch), n * at_once)
        with explained_memory_error(backend, together):
            made = [y for several in self._run(plan, part) for y in several]
        if len(made) == 1:
            return made[0]
        with explained_memory_error(backend, len(batch)):
            return array_module(made[0]).concatenate(made)

    def _plan(self, snapshot: Snapshot, batch: Batch, processes: bool = False) -> Plan:
        backend, samples, length = snapshot.backend, len(batch), batch.n_tokens
        seconds = snapshot.cost.seconds(samples, length)
        n = choose_workers(self.workers, backend, samples, samples * length, seconds, processes)
        threads = 1
        if not (processes and self._insist):
            threads = choose_threads(self.workers, snapshot, backend, samples, length)
        return Plan(backend, n if threads == 1 else 1, threads, seconds)

    def _counts(self, batch: Batch, n: int, part: Part) -> np.ndarray | None:
        """Return how much each sample counts; None if the batch is computed as a whole."""
        in_one = part is WHOLE and n == 1 and (self.micro_batch or len(batch)) >= len(batch)
        return None if in_one else counts_of(batch, self.loss)

    def _accumulate(self, k: int, share: Share, backend: str = "numpy") -> Array:
        """Put the gradients of a share into worker k's; return the share's part of the loss."""
        assert self.loss is not None
        model = above_frozen(twin_on(backend, self.model, of_data=True))
        gradients, total = self._gradients[k], 0.0
        if self._used.get(k) is gradients:
            gradients.zero()
        self._used[k] = gradients
        memory, whole = self._memory(k), len(share.parts) == 1
        # An overflow still shows in the loss, where `fit` finds it and names the tensor.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, weight in share.parts:
                if rows.start == rows.stop:
                    continue  # a part of a batch of fewer samples than parts
                batch = share.batch if whole else share.batch.of_rows(rows)
                drawn = part_generator(share.key, share.first + rows.start, len(batch), share.cut)
                context = EngineContext(True, drawn, workspace=memory, threads=share.threads)
                loss = fast_loss(self.loss, backend, context)
                total = total + accumulate(model, loss, batch, context, gradients, weight)
        return total

    def _run(self, plan: Plan, part: Callable[[int], Result]) -> list[Result]:
        if plan.workers > 1:
            return side_by_side(part, list(range(plan.workers)))
        with one_blas_thread(plan.backend, plan.seconds, plan.threads):
            return [part(0)]

    def _run_copies(self, shares: list[Share]) -> list[Array]:
        """Compute the first share here and the others in copies of this process."""
        assert self._copies is not None
        try:
            losses = self._copies.run(shares, self._accumulate)
        except BaseException:
            self._stop(at_once=True)  # a late answer would be taken for the next step's
            raise
        if not self._copies.snapshot.fits(self.model):  # a layer has set one of its attributes
            self._changed_itself += 1
            self._processes = self._insist or self._changed_itself < 2
            if not self._processes:
                self._stop()
        return losses

    def _start(self, plan: Plan, snapshot: Snapshot | None = None) -> None:
        """Give each worker memory, and gradients in the layout of a snapshot if there is one."""
        backend, n = plan.backend, plan.workers
        if self._gradients and backend_of(g=self._gradients[0].flat).name != backend:
            self._gradients.clear()  # the model moved since the last step
            self._workspaces.clear()
        while len(self._workspaces) < n:
            self._workspaces.append(Workspace())
        if snapshot is None:
            return
        if self._layout is None or self._layout.named != snapshot.layout.named:
            self._gradients.clear()
        self._layout = snapshot.layout
        while len(self._gradients) < n:
            # Lent, so that the memory is reused once the caller drops the gradients.
            zeros = self._workspaces[len(self._gradients)].zeros if backend == "numpy" else None
            self._gradients.append(Gradients(snapshot.layout, zeros))

    def _start_copies(self, n: int, snapshot: Snapshot) -> bool:
        """Make n copies that know the model as it is; return False if the system makes none."""
        if self._copies is not None and self._copies.fit(n, snapshot, self.loss):
            return True
        self._stop()
        try:
            self._copies = TeamCopies(
                n, self.model, self.loss, snapshot, self._gradients, self._accumulate
            )
        except CannotCopyError:
            if self._insist:
                raise
            self._processes = False
        return self._processes

    def _stop(self, at_once: bool = False) -> None:
        if self._copies is not None:
            self._copies.close(at_once)
            self._copies = None

    def _memory(self, k: int) -> Workspace:
        self._workspaces[k].tidy()
        return self._workspaces[k]


@contextmanager
def team_of(
    model: Layer, workers: int | str, micro_batch: int | None = None, loss: Loss | None = None
) -> Iterator[Team]:
    """Lend a `Team` whose workspaces stay with the model, for the next call to reuse."""
    shelf = kept_of(model).workspaces
    try:
        workspaces = shelf.pop()
    except IndexError:  # this is the first call, or other threads have taken all
        workspaces = []
    with Team(model, workers, micro_batch, workspaces, loss=loss) as team:
        yield team
    shelf.append(workspaces)
