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

from npformer.core import Array, Parameters, to_numpy
from npformer.distributed import Communicator
from npformer.moments import FLAT, Moments
from npformer.optim import Adam


class ShardedMoments(Moments):
    """m and v of this rank's shard of the flat buffer."""

    def __init__(self, parameters: Parameters, ranks: Communicator) -> None:
        super().__init__(parameters)
        self._ranks = ranks

    def _whole(self, x: Array) -> np.ndarray | None:
        found = self._ranks.join_shards(x, _flat(self._parameters).size)
        return None if found is None else np.array(to_numpy(found))

    def _lay_out(self, named: Mapping[str, tuple[Array, Array]]) -> None:
        super()._lay_out(named)
        own = self._ranks.shard(_flat(self._parameters).size)
        m, v = self._pairs[FLAT]
        self._pairs[FLAT] = m[own].copy(), v[own].copy()


class ShardedAdam(Adam):
    """Adam over several ranks, each of which has the moments of its own shard alone.

    All ranks call all methods together. `step` takes gradients of which the own shard is the sum of
    all ranks', as `Communicator.reduce_scatter` leaves it. `state` returns arrays on rank 0 alone.

    Parameters
    ----------
    optimizer : Adam
        Its settings, steps and moments are taken over, as they are now; its parameters must lie in
        one flat buffer. `give_back` gives them back.
    ranks : Communicator
    """

    def __init__(self, optimizer: Adam, ranks: Communicator) -> None:
        _flat(optimizer.parameters)
        self.__dict__.update(optimizer.__dict__)
        self._ranks, self._taken_from = ranks, optimizer
        self._moments = ShardedMoments(self.parameters, ranks)  # type: ignore[arg-type]
        if optimizer.steps:
            self._moments.load(optimizer._moments.save())
        optimizer._moments = Moments(self.parameters)  # their memory is free

    def give_back(self) -> None:
        """Give steps, settings and whole moments back to the optimizer that they came from."""
        ranks, of_self = self._ranks, {**self.__dict__}
        for name in ("_ranks", "_taken_from", "_moments"):
            of_self.pop(name)
        self._taken_from.__dict__.update(of_self)
        if self.steps:
            self._taken_from._moments.load(ranks.first(self._moments.save()))

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
        own, found = self._own(), {}
        for (name, p), at in zip(
            self.parameters.named.items(), self.parameters.offsets, strict=True
        ):
            first, last = max(at, own.start), min(at + p.size, own.stop)
            if first < last:
                found[name] = x[first - own.start : last - own.start]
        return found

    def _check_finite(self, pieces: list[tuple[str, Array, Array]]) -> None:
        """Check gradients on the host; if one rank's are not finite, all raise the same error."""
        ((_, _, g),) = pieces
        if type(g) is not np.ndarray:
            return
        finite = self._ranks.agree(math.isfinite(np.vdot(g, g))).all()
        if finite:
            return
        problem = None
        try:
            super()._check_finite(pieces)
        except ArithmeticError as error:
            problem = error
        first = next((p for p in self._ranks.gather(problem) if p is not None), None)
        if first is not None:
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
