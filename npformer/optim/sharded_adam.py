"""ShardedAdam: Adam whose moments are shared out over ranks (ZeRO, stage 1).

m and v take twice the memory of the parameters. Here each rank has those of its own shard of the
flat buffer alone, updates that shard, and gets the rest from the others (Rajbhandari et al., 2020).
Each entry's update is the same, so the parameters are equal bit for bit with and without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import Array, Parameters, array_module
from npformer.distributed import Communicator
from npformer.optim.adam import Adam
from npformer.optim.moments import FLAT, Moments


class ShardedMoments(Moments):
    """m and v of this rank's shard of the flat buffer. No rank ever makes room for all of them."""

    def __init__(self, parameters: Parameters, ranks: Communicator) -> None:
        super().__init__(parameters)
        self._named_parameters, self._ranks = parameters, ranks

    def gathered(self) -> Moments:
        """Return the moments of all ranks, on each of them."""
        whole, flat = Moments(self._parameters), _flat(self._parameters)
        m, v = (array_module(flat).zeros_like(flat) for _ in "mv")
        for of_all, x in zip((m, v), self.of(FLAT, flat), strict=True):
            of_all[self._ranks.shard(flat.size)] = x
            self._ranks.all_gather(of_all)
        whole._pairs[FLAT] = m, v
        return whole

    def _whole(self, x: Array) -> np.ndarray | None:
        found = self._ranks.join_shards(x, _flat(self._parameters).size)
        return super()._whole(found) if found is x else found

    def _lay_out(self, named: Mapping[str, tuple[Array, Array]]) -> None:
        flat = _flat(self._parameters)
        own = self._ranks.shard(flat.size)
        like = next(iter(named.values()))[0] if named else flat
        pair = tuple(array_module(like).zeros(own.stop - own.start, flat.dtype) for _ in "mv")
        if named:
            for name, entries, at in self._named_parameters.overlaps(own):
                for x, whole in zip(pair, named[name], strict=True):
                    x[at] = whole.reshape(-1)[entries]
        self._pairs[FLAT] = pair[0], pair[1]


class LentMoments(Moments):
    """Moments that a training has shared out over its ranks, until it gives them back."""

    def _named(self) -> dict[str, tuple[Array, Array]]:
        if not self._pairs:
            raise RuntimeError(
                "this optimizer's moments are shared out over the ranks of a training with "
                "shard_moments, which gives them back at its end; expected state.optimizer, which "
                "has them until then. If the training ended with an error, they are lost: make a "
                "new Adam, or restore this one from a checkpoint"
            )
        return super()._named()


class ShardedAdam(Adam):
    """Adam over several ranks, each of which has the moments of its own shard alone.

    All ranks call all methods together. `step` takes gradients of which the own shard is the sum of
    all ranks', as `Communicator.reduce_scatter` leaves it. `state` returns arrays on rank 0 alone.

    Parameters
    ----------
    optimizer : Adam
        Its settings, steps and moments are taken over, as they are now; its parameters must lie in
        one flat buffer. It cannot be used until `give_back`.
    ranks : Communicator
    """

    def __init__(self, optimizer: Adam, ranks: Communicator) -> None:
        if type(optimizer) is not Adam:
            raise TypeError(
                f"optimizer is a {type(optimizer).__name__}; expected an npformer.Adam itself, "
                "because a step of its own would not be taken with shard_moments"
            )
        self.__dict__.update(optimizer.__dict__)
        self._ranks, self._taken_from = ranks, optimizer
        self._sharded = ShardedMoments(self.parameters, ranks)  # type: ignore[arg-type]
        self._sharded._lay_out(optimizer._moments._named())
        self._moments = self._sharded
        optimizer._moments = LentMoments(self.parameters)  # the memory is free

    def give_back(self) -> None:
        """Give steps, settings and whole moments back to the optimizer that they came from."""
        of_self = {**self.__dict__, "_moments": self._sharded.gathered()}
        for name in ("_ranks", "_taken_from", "_sharded"):
            of_self.pop(name)
        self._taken_from.__dict__.update(of_self)

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update the own shard of all parameters, and get the other ranks' shards."""
        super().step(gradients)
        self._ranks.all_gather(_flat(self.parameters))

    def _pieces(self, gradients: Mapping[str, Array]) -> list[tuple[str, Array, Array]]:
        ((place, theta, g),) = super()._pieces(gradients)
        own = self._own()
        return [(place, theta[own], g[own])]

    def _parts(self, place: str, x: Array) -> dict[str, Array]:
        """Return what a vector of the shard holds for each parameter, as vectors."""
        assert isinstance(self.parameters, Parameters)
        return {name: x[at] for name, _, at in self.parameters.overlaps(self._own())}

    def _check_finite(self, pieces: list[tuple[str, Array, Array]]) -> None:
        """Check gradients on the host; if one rank's are not finite, all raise the same error."""
        ((_, _, g),) = pieces
        if type(g) is not np.ndarray:
            return
        if self._ranks.agree(math.isfinite(np.vdot(g, g))).all():
            return
        problem = None
        try:
            super()._check_finite(pieces)
        except ArithmeticError as error:
            problem = error
        for first in filter(None, self._ranks.gather(problem)):
            raise first

    def _own(self) -> slice:
        return self._ranks.shard(_flat(self.parameters).size)


def _flat(parameters: Any) -> Array:
    """Return the buffer of all parameters; ValueError if they do not lie in one."""
    if not isinstance(parameters, Parameters) or (flat := parameters.flat) is None:
        raise ValueError(
            "the parameters do not lie in one buffer, which the ranks would share out; expected "
            "those of model.parameters(), after model.flatten()"
        )
    return flat
