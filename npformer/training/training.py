"""The steps and epochs of a training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from npformer.core import Feed, Gradients, explained_memory_error
from npformer.data.lengths import cut, shuffled_by_length
from npformer.data.stored_samples import Samples
from npformer.distributed import Communicator
from npformer.distributed.parts import parts_by_tokens
from npformer.engine.batch_shares import WHOLE, Part
from npformer.engine.snapshot import Snapshot, snapshot_of
from npformer.engine.team import Team
from npformer.losses import Loss
from npformer.optim import NonFiniteGradientError, clip_by_global_norm
from npformer.optim.clipping import clip_over_ranks
from npformer.trainable.metrics import Metric
from npformer.training.arguments import trains
from npformer.training.callback_list import CallbackList
from npformer.training.callbacks import TrainingState
from npformer.training.early_stopping import EarlyStopping
from npformer.training.evaluation import batch_at_evaluation, measure, value_of
from npformer.training.interrupts import Interrupts
from npformer.training.loss_watch import LossWatch


class WritesCheckpoints(Protocol):
    """What writes the state of a training, for `Training.run`."""

    def after_epoch(self) -> None:
        """Write a checkpoint if it is time for one."""

    def write(self) -> None:
        """Write a checkpoint, unless the latest is as new."""


@dataclass
class Training:
    """What the steps of a training need."""

    state: TrainingState
    callbacks: CallbackList
    losses: LossWatch
    samples: Samples  # all data to train on, on the host
    held_out: Samples | None  # all validation data
    loss: Loss
    team: Team
    feed: Feed | None  # uploads batches to a device
    processes: bool | str  # whether evaluations are shared among copies of the process
    shuffle: np.random.Generator
    dropout: Any  # the generator of dropout's masks; it may be `shuffle`
    batch_size: int
    micro_batch: int | None
    clip_norm: float | None
    interrupts: Interrupts
    early_stopping: EarlyStopping
    metric: Metric = "accuracy"  # chooses the best epoch
    shard_moments: bool = False  # whether each rank has moments of Adam of its own shard alone
    ranks: Communicator = field(default_factory=Communicator)  # those that train this model
    rows: np.ndarray | None = None  # of the samples to train on; None: all
    lengths: np.ndarray | None = None  # of these samples, if batches are made by length
    order: np.ndarray | None = None  # of the samples in the epoch; None between two epochs
    seconds_before: float = 0.0  # that the epoch has taken in earlier processes
    counts: np.ndarray | None = None  # of each sample in a loss, if ranks share batches
    _began: float = 0.0  # when the epoch began or went on, on time.perf_counter
    _checked: Snapshot | None = None  # the model's snapshot when its parameters were last checked

    def run(self, checkpoints: WritesCheckpoints | None) -> None:
        """Take all steps that are left, unless a callback or a signal stops the training.

        Whenever nothing is half done, a signal may end it; a checkpoint is written before.
        """
        state, self._began = self.state, time.perf_counter()
        while not self._interrupted():
            if self.order is not None and state.step_in_epoch == state.n_steps:
                self._end_epoch()
                if checkpoints is not None:
                    checkpoints.after_epoch()
            elif state.stopping is not None:
                break
            elif self.order is not None:
                self.take_step(state.step_in_epoch + 1, self.order)
            elif state.epoch < state.epochs:
                self.seconds_before, self._began = 0.0, time.perf_counter()
                self.order = self._shuffled()
                state._set(epoch=state.epoch + 1, step_in_epoch=0)
            else:
                break
        state._set(_over=True)
        self.losses.finish(state)
        if checkpoints is not None:
            checkpoints.write()
        self.interrupts.check()

    def _interrupted(self) -> bool:
        """Return whether a signal has come, to any rank; a rank's `stop` is made known, too."""
        if self.ranks.size > 1:
            state, signum = self.state, self.interrupts.signum
            told = self.ranks.agree(signum, state.stopping is not None)
            if not signum and told[:, 0].any():
                self.interrupts.receive(int(told[:, 0].max()))
            if told[:, 1].any() and not told[:, 1].all():
                reasons = self.ranks.gather(state.stopping)
                state._set(_reason=next(reason for reason in reasons if reason is not None))
        return self.interrupts.waiting

    def seconds(self) -> float:
        """Return how long the epoch has taken so far."""
        return self.seconds_before + time.perf_counter() - self._began

    def _shuffled(self) -> np.ndarray:
        """Return the order of the samples in an epoch."""
        if self.lengths is None:
            order = self.shuffle.permutation(len(self.samples if self.rows is None else self.rows))
        else:
            order = shuffled_by_length(self.lengths, self.batch_size, self.shuffle)
        return order if self.rows is None else self.rows[order]

    def _end_epoch(self) -> None:
        """Evaluate the model after the last step of an epoch."""
        if self.held_out is not None:
            self._evaluate(self.held_out)
        self.callbacks.call("after_epoch", self.state)
        self.order = None

    def take_step(self, step: int, order: np.ndarray) -> None:
        """Take one step of the optimizer, on its share of the samples."""
        state, size = self.state, self.batch_size
        snapshot = self._checked_snapshot()
        rows, part, least = self._part_of(order[(step - 1) * size : step * size], snapshot)
        backend = snapshot.backend  # asked once: it takes time
        with self._computing(len(rows), backend):
            batch = self.samples.of_rows(rows)
            if self.lengths is not None:
                batch = cut(batch, per_token=state.model.per_token, at_least=least)
            batch = state.model.upload(batch, self.feed, loss=self.loss, backend=backend)
            loss, gradients = self.team.step(
                batch, generator=self.dropout, snapshot=snapshot, part=part
            )
        by, workers = self.team.shared_by, state.history.workers
        if part is not WHOLE:
            by = f"{self.ranks.size} ranks, each {by}"
            loss = loss.astype(gradients.flat.dtype).reshape(1)
            self.ranks.all_reduce(loss)
            if self.shard_moments:
                self.ranks.reduce_scatter(gradients.flat)
            else:
                self.ranks.all_reduce(gradients.flat)
            loss = loss.reshape(())
        workers[by] = workers.get(by, 0) + 1
        state._set(
            step=state.optimizer.steps + 1,
            step_in_epoch=step,
            rows=rows,
            gradients=None if self.shard_moments else gradients,
            _loss=loss,
        )
        self.losses.note(state)
        self.callbacks.call("before_update", state)
        with self._computing(len(rows), backend), self.interrupts.held():
            try:
                self._clip(gradients, part)
                state.optimizer.step(gradients)
            except NonFiniteGradientError:
                self.losses.read(state)  # if a loss is not finite, that says where it began
                raise
        if step == state.n_steps:  # recorded now, before a callback changes lr
            history, optimizer = state.history, state.optimizer
            history.train_loss.append(self.losses.epoch_mean(state))
            history.lr.append(float(optimizer.lr * optimizer.schedule(optimizer.steps)))
            history.seconds.append(self.seconds())
        self.callbacks.call("after_step", state)
        state._set(rows=None, gradients=None)

    def _clip(self, gradients: Gradients, part: Part) -> None:
        if self.clip_norm is None:
            return
        if part is WHOLE:
            clip_by_global_norm(gradients, self.clip_norm)
        else:
            clip_over_ranks(gradients, self.clip_norm, self.ranks, own_shard=self.shard_moments)

    def _part_of(self, rows: np.ndarray, snapshot: Snapshot) -> tuple[np.ndarray, Part, int]:
        """Return this rank's rows of a batch, their place in it, and to what length to cut them."""
        if self.counts is None:
            return rows, WHOLE, 1
        own, length, least = self.ranks.shard(len(rows)), self.samples.padded_length, 1
        if self.lengths is not None:
            lengths = self.lengths_of_all[rows]
            length = int(lengths.max())
            if snapshot.cuts_parts:
                own = parts_by_tokens(lengths, self.ranks.size)[self.ranks.rank]
            least = snapshot.length_of_part(int(lengths[own].max(initial=1)), length)
        return rows[own], Part(own.start, float(self.counts[rows].sum()), length), least

    @cached_property
    def lengths_of_all(self) -> np.ndarray:
        """Lengths by the number of the sample in all data, 0 for those held out."""
        assert self.lengths is not None
        if self.rows is None:
            return self.lengths
        found = np.zeros(len(self.samples), dtype=self.lengths.dtype)
        found[self.rows] = self.lengths
        return found

    def _evaluate(self, held_out: Samples) -> None:
        """Evaluate the model, and record the result."""
        state = self.state
        at_once = batch_at_evaluation(self.batch_size, self.micro_batch)
        with np.errstate(over="ignore", invalid="ignore"):
            found = measure(
                state.model,
                held_out,
                self.loss,
                at_once,
                self.processes,
                metric=self.metric,
                ranks=self.ranks,
            )
        state._set(evaluation=found)
        self.losses.check_validation(state, found.loss, held_out)
        state.history.validation_loss.append(found.loss)
        if not np.isnan(found.accuracy):
            state.history.validation_accuracy.append(found.accuracy)
        if not np.isnan(value := value_of(self.metric, found)):
            state.history.validation_metric.append(value)

    @contextmanager
    def _computing(self, n_rows: int, backend: str) -> Iterator[None]:
        """Allow overflow, which `LossWatch` finds, and explain errors when memory runs out."""
        at_once = min(self.batch_size, self.micro_batch or self.batch_size)
        explained = explained_memory_error(backend, n_rows, at_once)
        with np.errstate(over="ignore", invalid="ignore"), explained:
            yield

    def _checked_snapshot(self) -> Snapshot:
        """Return the model's snapshot; if it is new, check that the optimizer still fits."""
        snapshot = snapshot_of(self.state.model)
        if snapshot is self._checked:
            return snapshot
        if not trains(self.state.optimizer, self.state.model):
            raise ValueError(
                "the model's parameters are no longer the optimizer's: during the training, a "
                "layer was replaced or a parameter frozen. Expected the same parameters until the "
                "training ends: change the model before fit, or call fit again"
            )
        self._checked = snapshot
        return snapshot
