"""Several ranks: each takes its shard of every batch, and gradients are summed over all.

So all ranks have to begin with the same settings, weights and moments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Seed, described, generators, to_numpy
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import Team
from npformer.models.batch import Batch, Shard
from npformer.models.trainable import Model
from npformer.optim import Optimizer
from npformer.training.batches import Batches
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.distributed import Communicator
from npformer.training.distributed.clipping import clip_over_ranks
from npformer.training.distributed.sharded_adam import ShardedAdam
from npformer.training.distributed.shards import shards_by_tokens
from npformer.training.storage.agreement import differences


@dataclass
class RankBatches(Batches):
    """The shard of each batch that this rank computes."""

    ranks: Communicator = field(default_factory=Communicator)

    def __post_init__(self) -> None:
        self._counts = self.task.samples.counts_for(self.task.loss)

    def _rows(self, k: int) -> tuple[np.ndarray, Any, Shard | None]:
        rows, samples, snapshot = super()._rows(k)[0], self.task.samples, snapshot_of(self.model)
        own: slice = self.ranks.shard(len(rows))
        whole, at_least = samples.padded_lengths, np.ones(1, dtype=int)
        if self.way != "shuffled" and samples.lengths is not None:
            lengths = samples.lengths[rows]
            whole = tuple(lengths.max(axis=0).tolist())
            if snapshot.cuts_shards:
                own = shards_by_tokens(lengths.sum(axis=1), self.ranks.size)[self.ranks.rank]
            longest = lengths[own].max(axis=0, initial=1).tolist()
            at_least = np.array(snapshot.lengths_of_shard(longest, whole))
        total = float(self._counts[rows].sum())
        return rows[own], at_least, Shard(own.start, total, whole)

    def _counted(self, shard: Any, batch: Batch) -> Shard:
        own = float(batch.counts_for(self.task.loss).sum())
        place: Shard = shard._replace(total=float(self.ranks.agree(own).sum()))
        return place


class RankStep:
    """A `Step` that each rank's team computes for its shard, and all ranks add up.

    With `sharded`, each rank needs only the sum of its own shard of the gradients.
    """

    def __init__(self, team: Team, ranks: Communicator, sharded: bool) -> None:
        self._team, self._ranks, self.sharded = team, ranks, sharded

    @property
    def shared_by(self) -> str:
        """Who computed the last step, such as "2 ranks, each 1 worker"."""
        return f"{self._ranks.size} ranks, each {self._team.shared_by}"

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients, over all ranks."""
        loss, gradients = self._team.step(batch, generator)
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows it
            loss = loss.astype(gradients.flat.dtype).reshape(1)
            self._ranks.all_reduce(loss)
            add_up = self._ranks.reduce_scatter if self.sharded else self._ranks.all_reduce
            add_up(gradients.flat)
        return loss.reshape(()), gradients

    def clip(self, gradients: Gradients, max_norm: float) -> None:
        """Scale gradients so that their global norm is at most this."""
        clip_over_ranks(gradients, max_norm, self._ranks, own_shard=self.sharded)


def common_generator(ranks: Communicator, seed: Seed) -> np.random.Generator:
    """Return the generator of a training, in the same state on all ranks: that of rank 0."""
    own = generators.from_seed(seed)
    if isinstance(seed, int | np.integer):
        return own
    of_first = ranks.first(own)
    return own if of_first.bit_generator.state == own.bit_generator.state else of_first


def begin_together(
    ranks: Communicator, model: Model, optimizer: Optimizer, given: dict[str, Any]
) -> None:
    """Check that all ranks are given the same; give them the weights and moments of rank 0.

    `given` is what `settings_of` returns. Raises ValueError, which names what differs.
    """
    own = {"epochs": given["epochs"], **given["must"], "schedule": given["schedule"]}
    own["parameters"] = {name: p.shape for name, p in model.named_parameters().items()}
    own |= {"backend": model.backend, "dtype": model.dtype, "steps": optimizer.steps}
    for rank, theirs, of_first in ranks.unlike_first(own):
        for name, value, first in differences(of_first, theirs):
            raise ValueError(
                f"{name} is {value!r} on rank {rank}, and {first!r} on rank 0; expected the same "
                "on all ranks. Pass all data to each rank: it takes its own part of every batch"
            )
    for parameter in model.named_parameters().values():
        ranks.broadcast(parameter.value)
    if optimizer.steps:  # the same number on each rank
        optimizer.restore(*ranks.first(optimizer.state() if ranks.rank == 0 else ({}, {})))


class WatchOverRanks(Callback):
    """Checks after each epoch that all ranks have the same weights.

    They do unless a user's callback changes something on one rank and not on the others. If
    gradients are `sharded`, no rank has them all, and callbacks see none.
    """

    def __init__(self, ranks: Communicator, of_user: Sequence[Callback], sharded: bool) -> None:
        self._ranks, self._of_user, self._sharded = ranks, of_user, sharded

    def before_update(self, state: TrainingState) -> None:
        """Hide gradients that are sharded."""
        if self._sharded:
            state._now.gradients = None

    def after_epoch(self, state: TrainingState) -> None:
        """Compare a digest of all weights, if a user's callback may have changed some."""
        if not self._of_user:
            return
        own = hashlib.sha256()
        for parameter in state.model.parameters().values():
            own.update(to_numpy(parameter).tobytes())
        if not (odd := self._ranks.unlike_first(own.digest())):
            return
        raise RuntimeError(
            f"after epoch {state.epoch} the weights on rank {odd[0][0]} are not those on rank 0; "
            "expected the same on all ranks. A callback that changes gradients, weights or the "
            "learning rate has to do the same on every rank. The callbacks are "
            f"{', '.join(type(each).__name__ for each in self._of_user)}"
        )


def shard_optimizer(optimizer: Any, ranks: Communicator, callbacks: Iterable[Callback]) -> Any:
    """Return an optimizer whose moments are shared out over ranks; the same one for a single rank.

    Raises ValueError for a callback that would see, or change, gradients: no rank has them all.
    """
    for each in callbacks:
        if type(each).before_update is not Callback.before_update:
            raise ValueError(
                f"shard_moments is True and {described(each)} has before_update, but no rank has "
                "all gradients; expected one of the two. Leave shard_moments out"
            )
    return optimizer if ranks.size == 1 else ShardedAdam(optimizer, ranks)
