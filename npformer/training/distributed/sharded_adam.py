"""ShardedAdam: Adam whose moments are shared out over ranks (ZeRO, stage 1).

m and v take twice the memory of the parameters. Here each rank keeps only those of its shard of
the flat buffer, updates that shard, and gets the rest from the others (Rajbhandari et al., 2020).
Each entry's update is the same, so the parameters are equal bit for bit with and without sharding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from npformer.core import Array, Parameters, a_type
from npformer.core.gradients import flat_of
from npformer.optim import Adam, Optimizer
from npformer.optim.optimizer import FLAT, Buffer, Moments
from npformer.training.distributed.communicator import Communicator


class ShardedMoments(Moments):
    """m and v of this rank's shard of the flat buffer. A step never makes room for all of them."""

    parameters: Parameters

    def __init__(self, parameters: Any, ranks: Communicator) -> None:
        super().__init__(parameters, Adam.kinds)
        self._ranks = ranks

    def buffers(self) -> list[tuple[str, Array]]:
        """Return FLAT, and this rank's shard of the buffer."""
        flat = flat_buffer(self.parameters)
        return [(FLAT, flat[self._ranks.shard(flat.size)])]

    def split(self, buffer: str, x: Array) -> dict[str, Array]:
        """Return what a vector of the shard holds for each parameter, as vectors."""
        return {name: x[at] for name, _, at in self._overlaps()}

    def save(self) -> dict[str, np.ndarray]:
        """Return the moments of all ranks, on rank 0 only; the others get none."""
        m, v = (self._ranks.join_shards(x, self.parameters.size) for x in self._arrays[FLAT])
        return Moments(self.parameters, self.kinds)._moments_by_name(
            {} if m is None else {FLAT: (m, v)}
        )

    def load(self, named: Mapping[str, Array]) -> None:
        """Load only what belongs to this rank's shard."""
        entries = {f"{kind}.{name}": at for name, at, _ in self._overlaps() for kind in self.kinds}
        super().load({n: named[n].reshape(-1)[at] for n, at in entries.items() if n in named})

    def gather_all(self) -> Moments:
        """Return the moments of all ranks, on each of them."""
        moments, flat = Moments(self.parameters, self.kinds), flat_buffer(self.parameters)
        for of_all, shard_of_rank in zip(moments.of(FLAT, flat), self.of(FLAT, flat), strict=True):
            of_all[self._ranks.shard(flat.size)] = shard_of_rank
            self._ranks.all_gather(of_all)
        return moments

    def _overlaps(self) -> Iterator[tuple[str, slice, slice]]:
        own_slice = self._ranks.shard(flat_buffer(self.parameters).size)
        return self.parameters.overlaps(own_slice)


class LentMoments(Moments):
    """Moments that a training has shared out over its ranks, until it gives them back."""

    def of(self, name: str, theta: Array) -> tuple[Array, ...]:
        """Return what a checkpoint has put back; RuntimeError before that."""
        self._moments_by_name(self._arrays)
        return super().of(name, theta)

    def _moments_by_name(self, buffers: Mapping[str, tuple[Array, ...]]) -> dict[str, Array]:
        if not buffers:
            raise RuntimeError(
                "this optimizer's moments are shared out over the ranks of a training with "
                "shard_moments; expected state.optimizer, which has them until the training ends "
                "and gives them back. If it ended with an error, they are lost: make a new Adam, "
                "or restore this one from a checkpoint"
            )
        return super()._moments_by_name(buffers)


class ShardedAdam(Adam):
    """Adam over several ranks, each of which keeps only the moments of its shard.

    All ranks call all methods together. `step` takes gradients whose own shard is the sum over all
    ranks, as `Communicator.reduce_scatter` leaves it. `state` returns arrays on rank 0 only.

    Parameters
    ----------
    optimizer : Adam
        Its settings, steps and moments are taken over, as they are now; its parameters must lie in
        one flat buffer. It cannot be used until `give_back`.
    ranks : Communicator
    """

    _moments: ShardedMoments

    def __init__(self, optimizer: Optimizer, ranks: Communicator) -> None:
        if type(optimizer) is not Adam:
            raise TypeError(
                f"optimizer is {a_type(optimizer)}; expected an npformer.Adam itself, "
                "because shard_moments does not call the step of a subclass"
            )
        for name, value in vars(optimizer).items():
            setattr(self, name, value)
        self._ranks = ranks
        self._taken_from = optimizer
        self._moments = ShardedMoments(self.parameters, ranks)
        self._moments.load(optimizer._moments._moments_by_name(optimizer._moments._arrays))
        optimizer._moments = LentMoments(self.parameters, self.kinds)  # the memory is free

    def give_back(self) -> None:
        """Give steps, settings and whole moments back to the optimizer that they came from."""
        for name, value in vars(self).items():
            if name not in ("_ranks", "_taken_from", "_moments"):
                setattr(self._taken_from, name, value)
        self._taken_from._moments = self._moments.gather_all()

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update this rank's shard of the parameters, and get the other ranks' shards."""
        super().step(gradients)
        self._ranks.all_gather(flat_buffer(self.parameters))

    def _buffers(self, gradients: Mapping[str, Array]) -> list[Buffer]:
        (buffer,) = super()._buffers(gradients)
        own_slice = self._ranks.shard(buffer.g.size)
        return [Buffer(buffer.name, buffer.theta[own_slice], g=buffer.g[own_slice])]

    def _check_finite(self, buffers: list[Buffer]) -> None:
        """Raise the same error on all ranks: that of the first rank that has one."""
        g = buffers[0].g
        if type(g) is np.ndarray and not self._ranks.agree(math.isfinite(np.vdot(g, g))).all():
            for problem in self._ranks.gather(self._first_problem(buffers)):
                if problem is not None:
                    raise problem


def flat_buffer(parameters: Any) -> Array:
    """Return the buffer of all parameters; ValueError if they do not lie in one."""
    if (flat := flat_of(parameters)) is None:
        raise ValueError(
            "the parameters do not lie in one buffer, which the ranks could share out; expected "
            "those of model.parameters(), after model.flatten()"
        )
    return flat
