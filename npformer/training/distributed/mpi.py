"""MPI's ranks: a `Communicator` by mpi4py.

Each exchange begins with a meeting. A rank that waits there for the others polls, so it can handle
signals meanwhile; a rank that has failed says so there, and all leave together. What follows a
meeting takes no longer than moving the data.
"""

from __future__ import annotations

import atexit
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from npformer.core import Array, asarray, backend_of, cores, to_numpy
from npformer.core.arrays import own_cores, share_cores
from npformer.training.distributed.communicator import Communicator, RankFailed, Value
from npformer.training.distributed.nccl import NCCL, connect

SPIN = 0.002
"""Seconds for which a waiting rank polls without a pause, except to let other processes run."""

PAUSE = 0.0002
"""Seconds between two polls of a rank that has waited for longer."""

PATIENCE = 5.0
"""Seconds for which a rank that has failed waits for the others before it ends them."""

CALLS = [*vars(Communicator)]
"""Among these is what ranks meet for: unless all come for the same, none of them does it."""


class MPICommunicator(Communicator):
    """The ranks of an MPI communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Duplicated, so that messages of your own do not meet those of npformer.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI
        from threadpoolctl import ThreadpoolController

        self._mpi = MPI
        self._joined: dict[str, NCCL | None] = {}  # the GPUs of the ranks, by their backend
        self._comm = comm.Dup()
        self._host = HostMemory(self._comm)
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        local = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = local.Get_rank(), local.Get_size()
        # A launcher may have bound each rank to its own cores. If not, ranks share them.
        share_cores(sum(not own_cores().isdisjoint(its) for its in local.allgather(own_cores())))
        local.Free()
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(min(library.num_threads, cores()))  # never more than was set
        self._told: BaseException | None = None  # what an inner guard has told the others

    def agree(self, *values: float) -> np.ndarray:
        self._meet("agree")
        agreed = np.empty((self.size, len(values)), dtype="float64")
        self._comm.Allgather(np.array(values, dtype="float64"), agreed)
        return agreed

    def gather(self, value: Value) -> list[Value]:
        self._meet("gather")
        values: list[Value] = self._comm.allgather(value)
        return values

    def first(self, value: Value) -> Value:
        self._meet("first")
        first_value: Value = self._comm.bcast(value)
        return first_value

    def broadcast(self, x: Array) -> None:
        with self._exchange("broadcast", x) as (by, numbers):
            by.broadcast(numbers)

    def all_reduce(self, x: Array) -> None:
        with self._exchange("all_reduce", x) as (by, numbers):
            by.reduce_scatter(numbers, self._shards(x.size))
            by.all_gather(numbers, self._shards(x.size))

    def reduce_scatter(self, x: Array) -> None:
        with self._exchange("reduce_scatter", x) as (by, numbers):
            by.reduce_scatter(numbers, self._shards(x.size))

    def all_gather(self, x: Array) -> None:
        with self._exchange("all_gather", x) as (by, numbers):
            by.all_gather(numbers, self._shards(x.size))

    def join_shards(self, x: Array, n: int) -> Array | None:
        self._meet("join_shards")
        shard = np.ascontiguousarray(to_numpy(x))
        joined = np.empty(n, shard.dtype) if self.rank == 0 else None
        self._comm.Gatherv(shard, None if joined is None else [joined, _sizes(self._shards(n))])
        return joined

    def concatenate(self, x: np.ndarray) -> np.ndarray:
        rows = self.gather(len(x))
        joined = np.empty((sum(rows), *x.shape[1:]), x.dtype)
        of_row = joined[:1].size
        counts = [n * of_row for n in rows]
        self._comm.Allgatherv(np.ascontiguousarray(x), [joined, counts])
        return joined

    @contextmanager
    def guard(self) -> Iterator[Self]:
        try:
            yield self
            self._meet("guard")  # nobody leaves before it is known that none has failed
        except RankFailed:
            raise
        except BaseException as error:
            if error is self._told:
                raise
            self._told = error
            error.add_note(f"This is rank {self.rank} of {self.size}.")
            if (first := self._tell()) != self.rank:
                raise RankFailed(first) from error
            raise

    @contextmanager
    def _exchange(self, call: str, x: Array) -> Iterator[tuple[NCCL | HostMemory, Array]]:
        """Meet for a call; lend what exchanges an array, and its numbers where that takes them."""
        self._meet(call)
        if type(x) is np.ndarray:
            yield self._host, x
            return
        if (backend := backend_of(x=x)).name not in self._joined:  # all ranks come here together
            self._joined[backend.name] = connect(backend, self)
        if (gpus := self._joined[backend.name]) is not None:
            yield gpus, x
            return
        host = np.array(to_numpy(x))
        yield self._host, host
        x[...] = asarray(host, backend.name)

    def _shards(self, n: int) -> list[slice]:
        return [self.shard(n, rank) for rank in range(self.size)]

    def _meet(self, call: str) -> None:
        """Wait until all ranks are here for the same call, or one of them that has failed."""
        call_number = CALLS.index(call)
        met = self._meet_all(self.size, math.inf, call_number)
        assert met is not None  # its patience is infinite
        failed, first, last = met
        if failed < self.size:
            raise RankFailed(failed)
        if first != last:
            other = CALLS[last if call_number == first else first]
            raise RuntimeError(
                f"ranks call different methods of their communicator: this one {call}, and another "
                f"one {other}; expected the same calls in the same order. Let all ranks make "
                "the calls that need all, such as state.optimizer.state() with shard_moments"
            )

    def _tell(self) -> int:
        """Come to the next meeting as a rank that has failed; return the first rank that has."""
        met = self._meet_all(self.rank, PATIENCE)
        if met is None:  # the others compute for a long time, or never meet again
            atexit.register(self._comm.Abort, 1)  # MPI's own end would wait for them
            return self.rank
        return met[0]

    def _meet_all(self, failed: int, patience: float, call: int = 0) -> tuple[int, int, int] | None:
        """Return the smallest `failed` of all ranks, and their smallest and largest `call`.

        None if they do not come within `patience` seconds.
        """
        mine, least = np.array([failed, call, -call]), np.empty(3, dtype=int)
        request = self._comm.Iallreduce(mine, least, self._mpi.MIN)
        began = time.perf_counter()
        while not request.Test():
            if (waited := time.perf_counter() - began) > patience:
                return None
            if waited < SPIN and hasattr(os, "sched_yield"):
                os.sched_yield()
            else:
                time.sleep(PAUSE)
        return int(least[0]), int(least[1]), -int(least[2])


class HostMemory:
    """The ranks' memory on the host, with the methods of `NCCL`."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._sums: dict[tuple[int, str], np.ndarray] = {}  # memory of exchanges, by their size

    def broadcast(self, x: np.ndarray) -> None:
        """Copy the array of rank 0 into that of each rank."""
        self._comm.Bcast(x)

    def reduce_scatter(self, x: np.ndarray, shards: list[slice]) -> None:
        """Replace each rank's shard of a vector by the sum."""
        own = x[shards[self._comm.Get_rank()]]
        key = (len(own), x.dtype.str)
        if key not in self._sums:  # fresh memory would take longer than the exchange
            self._sums[key] = np.empty_like(own)
        self._comm.Reduce_scatter(x, self._sums[key], _sizes(shards))
        own[...] = self._sums[key]

    def all_gather(self, x: np.ndarray, shards: list[slice]) -> None:
        """Fill a vector: each rank gives its shard of it."""
        from mpi4py import MPI

        self._comm.Allgatherv(MPI.IN_PLACE, [x, _sizes(shards)])


def _sizes(shards: list[slice]) -> list[int]:
    return [shard.stop - shard.start for shard in shards]
