"""Several ranks: each takes its shard of every batch, and gradients are summed over all.

So all ranks have to begin with the same settings, weights and moments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Seed, generators, to_numpy
from npformer.engine.snapshot import snapshot_of
from npformer.models.batch import Batch, Shard
from npformer.models.losses import Loss
from npformer.models.step import Step
from npformer.models.trainable import Model
from npformer.optim import Optimizer
from npformer.training.batches import Batches, Task, choose_batching
from npformer.training.builder import Builder, optimizer_for
from npformer.training.callbacks import Callback, TrainingState, check_needs_no_gradients
from npformer.training.checkpoints import settings_of
from npformer.training.distributed import Communicator
from npformer.training.distributed.clipping import clip_over_ranks
from npformer.training.distributed.sharded_adam import ShardedAdam
from npformer.training.distributed.shards import shards_by_tokens
from npformer.training.signals import Interrupts
from npformer.training.steps import Update
from npformer.training.storage.agreement import differences


@dataclass(frozen=True)
class RankBuilder(Builder):
    """Builds the parts of a training over several ranks: what one process has, wrapped."""

    processes: Communicator

    def generator(self) -> np.random.Generator:
        """Return the generator of the training, in the same state on all ranks."""
        return common_generator(self.processes, self.settings.seed)

    def batches(self, task: Task, generator: np.random.Generator) -> Batches:
        """Return this rank's shards of the batches."""
        return RankBatches(
            self.model,
            task,
            batch_size=self.settings.samples_per_update,
            way=choose_batching(self.model, task.part, self.settings.batches),
            shuffle=generator,
            ranks=self.processes,
        )

    def optimizer(self, batches: Batches, callbacks: list[Callback]) -> Optimizer:
        """Return the optimizer, in the same state on all ranks, perhaps with sharded moments."""
        n_steps = self.settings.epochs * len(batches)
        optimizer = optimizer_for(self.model, self.settings, n_steps)
        to_agree = settings_of(self.model, optimizer, batches, self.settings)
        begin_together(self.processes, self.model, optimizer, to_agree)
        if not self.settings.shard_moments:
            return optimizer
        check_needs_no_gradients(callbacks)
        return ShardedAdam(optimizer, self.processes)

    def give_back(self, optimizer: Optimizer) -> None:
        """Give the user's Adam its moments back, if they were sharded."""
        if isinstance(optimizer, ShardedAdam) and self.settings.optimizer is not None:
            optimizer.give_back()

    def interrupts(self) -> Interrupts:
        """Return the watcher that lets a signal on any rank end the training on all."""
        return InterruptsOfRanks(self.processes)

    def step(self, loss: Loss, dropout: Any, resources: ExitStack) -> Step:
        """Return what computes the loss of a batch and its gradients, over all ranks."""
        step = self._team_step(loss, dropout, resources)
        return RankStep(step, self.processes, sharded=self.settings.shard_moments)

    def update(self, optimizer: Optimizer) -> Update:
        """Return what updates the weights by gradients, perhaps after clipping over all ranks."""
        if self.settings.clip_norm is None:
            return optimizer
        return ClippedUpdateOverRanks(
            optimizer,
            self.settings.clip_norm,
            self.processes,
            sharded=self.settings.shard_moments,
        )

    def _watchers_over_ranks(self, callbacks: list[Callback]) -> list[Callback]:
        return [WatchOverRanks(self.processes, callbacks, sharded=self.settings.shard_moments)]


@dataclass
class RankBatches(Batches):
    """The shard of each batch that this rank computes."""

    ranks: Communicator = field(default_factory=Communicator)

    def __post_init__(self) -> None:
        self._counts = self.task.samples.counts_for(self.task.loss)

    def _rows(self, k: int) -> tuple[np.ndarray, Any, Shard | None]:
        rows, _, _ = super()._rows(k)
        samples = self.task.samples
        snapshot = snapshot_of(self.model)
        own_rows: slice = self.ranks.shard(len(rows))
        lengths_of_batch = samples.lengths_with_padding
        at_least = np.ones(1, dtype=int)
        if self.way != "shuffled" and samples.lengths is not None:
            lengths = samples.lengths[rows]
            lengths_of_batch = tuple(lengths.max(axis=0).tolist())
            if snapshot.is_stock:
                shards = shards_by_tokens(lengths.sum(axis=1), self.ranks.size)
                own_rows = shards[self.ranks.rank]
            longest = lengths[own_rows].max(axis=0, initial=1).tolist()
            at_least = np.array(snapshot.lengths_of_shard(longest, lengths_of_batch))
        total = float(self._counts[rows].sum())
        return rows[own_rows], at_least, Shard(own_rows.start, total, lengths_of_batch)

    def _count_labels(self, shard: Any, batch: Batch) -> Shard:
        own_count = float(batch.counts_for(self.task.loss).sum())
        counted: Shard = shard._replace(total=float(self.ranks.agree(own_count).sum()))
        return counted


@dataclass
class RankStep:
    """A `Step` that each rank computes for its shard, and all ranks add up.

    With `sharded`, each rank needs only the sum of its shard of the gradients.
    """

    own_step: Step
    ranks: Communicator
    sharded: bool

    @property
    def shared_by(self) -> str:
        """Who computed the last step, such as "2 ranks, each 1 worker"."""
        return f"{self.ranks.size} ranks, each {self.own_step.shared_by}"

    def __call__(self, batch: Batch) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients, over all ranks."""
        loss, gradients = self.own_step(batch)
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows it
            loss = loss.astype(gradients.flat.dtype).reshape(1)
            self.ranks.all_reduce(loss)
            if self.sharded:
                self.ranks.reduce_scatter(gradients.flat)
            else:
                self.ranks.all_reduce(gradients.flat)
        return loss.reshape(()), gradients


@dataclass
class ClippedUpdateOverRanks:
    """An update by gradients whose global norm over all ranks is at most `max_norm`."""

    optimizer: Optimizer
    max_norm: float
    ranks: Communicator
    sharded: bool

    def step(self, gradients: Gradients) -> None:
        """Clip the gradients, in place, and update every parameter."""
        clip_over_ranks(gradients, self.max_norm, self.ranks, own_shard=self.sharded)
        self.optimizer.step(gradients)


@dataclass
class InterruptsOfRanks(Interrupts):
    """Ends the training on all ranks after a signal, or a callback's `stop`, on one of them."""

    ranks: Communicator

    def _tell(self, state: TrainingState) -> None:
        answers = self.ranks.agree(self._signum, state.stopping is not None)
        signums = answers[:, 0]
        is_stopping = answers[:, 1]
        if not self._signum and signums.any():
            self._signum = int(signums.max())
        if is_stopping.any() and not is_stopping.all():
            reasons = self.ranks.gather(state.stopping)
            state._set(stopping=next(reason for reason in reasons if reason))
        super()._tell(state)


def common_generator(ranks: Communicator, seed: Seed) -> np.random.Generator:
    """Return the generator of a training, in the same state on all ranks: that of rank 0."""
    generator = generators.from_seed(seed)
    if isinstance(seed, int | np.integer):
        return generator
    first_generator = ranks.first(generator)
    if first_generator.bit_generator.state == generator.bit_generator.state:
        return generator
    return first_generator


def begin_together(
    ranks: Communicator, model: Model, optimizer: Optimizer, settings: dict[str, Any]
) -> None:
    """Check that all ranks are given the same; give them the weights and moments of rank 0.

    `settings` is what `settings_of` returns. Raises ValueError, which names what differs.
    """
    description = {
        "epochs": settings["epochs"],
        **settings["must"],
        "schedule": settings["schedule"],
        "parameters": {name: p.shape for name, p in model.named_parameters().items()},
        "backend": model.backend,
        "dtype": model.dtype,
        "steps": optimizer.steps,
    }
    for rank, of_rank, of_first in ranks.unlike_first(description):
        for name, value, first in differences(of_first, of_rank):
            raise ValueError(
                f"{name} is {value!r} on rank {rank}, and {first!r} on rank 0; expected the same "
                "on all ranks. Pass all data to each rank: it takes its own part of every batch"
            )
    for parameter in model.named_parameters().values():
        ranks.broadcast(parameter.value)
    if optimizer.steps:  # the same number on each rank
        values, moments = ranks.first(optimizer.state() if ranks.rank == 0 else ({}, {}))
        optimizer.restore(values, moments)


class WatchOverRanks(Callback):
    """Checks after each epoch that all ranks have the same weights.

    They do unless a user's callback changes something on one rank and not on the others. If
    gradients are `sharded`, no rank has them all, and callbacks see none.
    """

    def __init__(self, ranks: Communicator, callbacks: Sequence[Callback], sharded: bool) -> None:
        self._ranks = ranks
        self._callbacks = callbacks  # the user's
        self._sharded = sharded

    def before_update(self, state: TrainingState) -> None:
        """Hide gradients that are sharded."""
        if self._sharded:
            state._now.gradients = None

    def after_epoch(self, state: TrainingState) -> None:
        """Compare a digest of all weights, if a user's callback may have changed some."""
        if not self._callbacks:
            return
        digest = hashlib.sha256()
        for parameter in state.model.parameters().values():
            digest.update(to_numpy(parameter).tobytes())
        differing = self._ranks.unlike_first(digest.digest())
        if not differing:
            return
        rank, _, _ = differing[0]
        raise RuntimeError(
            f"after epoch {state.epoch} the weights on rank {rank} are not those on rank 0; "
            "expected the same on all ranks. A callback that changes gradients, weights or the "
            "learning rate has to do the same on every rank. The callbacks are "
            f"{', '.join(type(callback).__name__ for callback in self._callbacks)}"
        )
