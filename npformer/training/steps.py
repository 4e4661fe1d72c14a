"""The steps and epochs of a training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Feed, explained_memory_error
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import Team
from npformer.losses import Loss
from npformer.models import Batch
from npformer.optim import clip_by_global_norm
from npformer.training.arguments import trains
from npformer.training.callback_list import CallbackList
from npformer.training.callbacks import TrainingState
from npformer.training.evaluation import batch_at_evaluation, measure
from npformer.training.loss_watch import LossWatch


@dataclass
class Training:
    """What the steps of a training need."""

    state: TrainingState
    callbacks: CallbackList
    losses: LossWatch
    samples: Batch  # all data to train on, on the host
    held_out: Batch | None  # all validation data
    loss: Loss
    team: Team
    feed: Feed | None  # uploads batches to a device
    processes: bool | str  # whether evaluations are shared among copies of the process
    shuffle: np.random.Generator
    dropout: Any  # the generator of dropout's masks; it may be `shuffle`
    batch_size: int
    micro_batch: int | None
    clip_norm: float | None
    _began: float = 0.0  # when the epoch began, on time.perf_counter
    _checked: Any = None  # the model's snapshot when its parameters were last checked

    def run_epoch(self, epoch: int) -> None:
        """Go through all data once, unless a callback stops the training, and evaluate."""
        state, size = self.state, self.batch_size
        state._set(epoch=epoch)
        self._began = time.perf_counter()
        order = self.shuffle.permutation(len(self.samples))
        for step in range(1, state.n_steps + 1):
            self.take_step(step, order[(step - 1) * size : step * size])
            if state.stopping is not None and step < state.n_steps:
                return
        if self.held_out is not None:
            self._evaluate(self.held_out)
        self.callbacks.call("after_epoch", state)

    def take_step(self, step: int, rows: np.ndarray) -> None:
        """Take one step of the optimizer, on some samples."""
        state = self.state
        with self._computing(len(rows)):
            self._check_parameters()
            batch = state.model.upload(self.samples.of_rows(rows), self.feed, loss=self.loss)
            loss, gradients = self.team.step(batch, generator=self.dropout)
        by, workers = self.team.shared_by, state.history.workers
        workers[by] = workers.get(by, 0) + 1
        state._set(
            step=state.optimizer.steps + 1,
            step_in_epoch=step,
            rows=rows,
            gradients=gradients,
            _loss=loss,
        )
        self.losses.note(state)
        self.callbacks.call("before_update", state)
        with self._computing(len(rows)):
            if self.clip_norm is not None:
                clip_by_global_norm(gradients, self.clip_norm)
            state.optimizer.step(gradients)
        if step == state.n_steps:  # recorded now, before a callback changes lr
            history, optimizer = state.history, state.optimizer
            history.train_loss.append(self.losses.epoch_mean(state))
            history.lr.append(float(optimizer.lr * optimizer.schedule(optimizer.steps)))
            history.seconds.append(time.perf_counter() - self._began)
        self.callbacks.call("after_step", state)
        state._set(rows=None, gradients=None)

    def _evaluate(self, held_out: Batch) -> None:
        """Evaluate the model, and record the result."""
        state = self.state
        at_once = batch_at_evaluation(self.batch_size, self.micro_batch)
        with np.errstate(over="ignore", invalid="ignore"):
            found = measure(state.model, held_out, self.loss, at_once, self.processes)
        state._set(evaluation=found)
        self.losses.check_validation(state, found.loss, held_out)
        state.history.validation_loss.append(found.loss)
        if not np.isnan(found.accuracy):
            state.history.validation_accuracy.append(found.accuracy)

    @contextmanager
    def _computing(self, n_rows: int) -> Iterator[None]:
        """Allow overflow, which `LossWatch` finds, and explain errors when memory runs out."""
        at_once = min(self.batch_size, self.micro_batch or self.batch_size)
        explained = explained_memory_error(self.state.model.backend, n_rows, at_once)
        with np.errstate(over="ignore", invalid="ignore"), explained:
            yield

    def _check_parameters(self) -> None:
        """If the model has changed, check that the optimizer still has its parameters."""
        snapshot = snapshot_of(self.state.model)
        if snapshot is self._checked:
            return
        if not trains(self.state.optimizer, self.state.model):
            raise ValueError(
                "the model's parameters are no longer the optimizer's: during the training, a "
                "layer was replaced or a parameter frozen. Expected the same parameters until the "
                "training ends: change the model before fit, or call fit again"
            )
        self._checked = snapshot
