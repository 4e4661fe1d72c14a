"""Workers: all who compute a step, in this process and on other ranks. They add up gradients.

A rank is a worker, too. What the workers of a rank have computed is summed first, and then over the
ranks. For that all have to begin with the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Seed, described, initializers
from npformer.data.samples import Samples, in_short
from npformer.distributed import Communicator
from npformer.engine.team import Team
from npformer.optim import Adam, clip_by_global_norm
from npformer.optim.adam import SETTINGS
from npformer.optim.clipping import clip_over_ranks
from npformer.optim.schedules import factors_of
from npformer.optim.sharded_adam import ShardedAdam
from npformer.trainable import Model
from npformer.training.batches import Picked
from npformer.training.callbacks import Callback

FACTORS_UP_TO = 10_000
"""Steps for which schedules are compared."""


class Workers:
    """The workers of this process, and the ranks.

    Parameters
    ----------
    team : Team
    ranks : Communicator
    sharded : bool
        Whether each rank needs the sum of its own shard of the gradients alone.
    """

    def __init__(self, team: Team, ranks: Communicator, sharded: bool) -> None:
        self.sharded = sharded
        self._team, self._ranks = team, ranks

    @property
    def shared_by(self) -> str:
        """Who computed the last step, such as "2 processes"."""
        here, n = self._team.shared_by, self._ranks.size
        return here if n == 1 else f"{n} ranks, each {here}"

    def step(self, picked: Picked, generator: Any) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients, over all workers.

        `generator` draws the masks of dropout.
        """
        _, batch, part, snapshot = picked
        loss, gradients = self._team.step(batch, generator=generator, snapshot=snapshot, part=part)
        if self._ranks.size == 1:
            return loss, gradients
        with np.errstate(over="ignore", invalid="ignore"):  # it shows in the loss
            loss = loss.astype(gradients.flat.dtype).reshape(1)
            self._ranks.all_reduce(loss)
            add_up = self._ranks.reduce_scatter if self.sharded else self._ranks.all_reduce
            add_up(gradients.flat)
        return loss.reshape(()), gradients

    def clip(self, gradients: Gradients, max_norm: float | None) -> None:
        """Scale gradients so that their global norm is at most this; None changes nothing."""
        if max_norm is not None and self._ranks.size == 1:
            clip_by_global_norm(gradients, max_norm)
        elif max_norm is not None:
            clip_over_ranks(gradients, max_norm, self._ranks, own_shard=self.sharded)


def common_generator(ranks: Communicator, seed: Seed) -> np.random.Generator:
    """Return the generator of a training, in the same state on all ranks: that of rank 0."""
    own = initializers.generator(seed)
    if ranks.size == 1 or isinstance(seed, int | np.integer):
        return own
    of_first = ranks.first(own)
    return own if of_first.bit_generator.state == own.bit_generator.state else of_first


def begin_together(ranks: Communicator, model: Model, optimizer: Adam, **given: Any) -> None:
    """Check that all ranks were given the same; give them the weights and moments of rank 0.

    Raises ValueError, which names what differs.
    """
    if ranks.size == 1:
        return
    compared = {"model": model, "optimizer": optimizer, **given}
    of_ranks = ranks.gather({name: _comparable(value) for name, value in compared.items()})
    for rank, found in enumerate(of_ranks):
        for name, value in found.items():
            if value != (first := of_ranks[0][name]):
                raise ValueError(
                    f"{name} is {value} on rank {rank}, and {first} on rank 0; expected the same "
                    "on all ranks. Each takes its own part of every batch, so none needs a part of "
                    "the data made for it"
                )
    for parameter in model.named_parameters().values():
        ranks.broadcast(parameter.value)
    if optimizer.steps:  # as many on each
        optimizer.restore(*ranks.first(optimizer.state() if ranks.rank == 0 else ({}, {})))


def sharded(optimizer: Adam, ranks: Communicator, callbacks: Iterable[Callback]) -> Adam:
    """Return an optimizer whose moments are shared out over ranks; the same one for a single rank.

    Raises ValueError for a callback that would see, or change, gradients which no rank has whole.
    """
    for each in callbacks:
        if type(each).before_update is not Callback.before_update:
            raise ValueError(
                f"shard_moments is True and {described(each)} has before_update, for which no rank "
                "has the gradients; expected one of the two. Leave shard_moments out"
            )
    return optimizer if ranks.size == 1 else ShardedAdam(optimizer, ranks)


def _comparable(value: Any) -> Any:
    """Return what stands for a value in a comparison, and can be read in a message."""
    if isinstance(value, Samples):
        return in_short(value)
    if isinstance(value, Model):
        shapes = {name: p.shape for name, p in value.named_parameters().items()}
        digest = hashlib.sha256(repr(shapes).encode()).hexdigest()[:8]
        kind = f"{value.dtype} on {value.backend}"
        return f"{len(shapes)} parameters, {kind} (digest of their shapes {digest})"
    if isinstance(value, Adam):
        settings = {name: getattr(value, name) for name in (*SETTINGS, "steps")}
        return f"Adam({settings}, schedule={factors_of(value.schedule, FACTORS_UP_TO)})"
    return value if isinstance(value, str | int | float | None) else described(value)
