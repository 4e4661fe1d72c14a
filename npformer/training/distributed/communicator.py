"""Communicator: what the ranks of a training tell each other. This base class is a single rank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

import numpy as np

from npformer.core import Array, to_numpy

Value = TypeVar("Value")


class RankFailed(SystemExit):
    """Another rank has failed and says why; if nobody catches this, the process ends quietly.

    Attributes
    ----------
    rank : int
        The one that failed.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(1)
        self.rank = rank

    def __str__(self) -> str:
        return f"rank {self.rank} failed"


class Communicator:
    """The ranks that train a model together. This class itself is a single rank.

    All ranks have to call the same methods in the same order.

    Attributes
    ----------
    rank, size : int
        The number of this rank, counted from 0, and how many there are.
    local_rank, local_size : int
        The same among the ranks of this machine.
    """

    rank = 0
    size = 1
    local_rank = 0
    local_size = 1

    def shard(self, n: int, rank: int | None = None) -> slice:
        """Return the part of n entries that belongs to a rank, this one if none is given.

        Parts differ by one entry at most, and follow each other in the order of ranks.
        """
        rank = self.rank if rank is None else rank
        return slice(rank * n // self.size, (rank + 1) * n // self.size)

    def agree(self, *values: float) -> np.ndarray:
        """Return the values of all ranks: float64, shape (size, number of values)."""
        return np.array([values], dtype="float64")

    def gather(self, value: Value) -> list[Value]:
        """Return what each rank gave, in the order of ranks: small objects, by pickle."""
        return [value]

    def unlike_first(self, value: Value) -> list[tuple[int, Value, Value]]:
        """Return each rank that gave something else than rank 0: its number, that, and rank 0's."""
        first, *later_values = self.gather(value)
        return [
            (rank, later_value, first)
            for rank, later_value in enumerate(later_values, 1)
            if later_value != first
        ]

    def first(self, value: Value) -> Value:
        """Return what rank 0 gave: an object, by pickle."""
        return value

    def broadcast(self, x: Array) -> None:
        """Copy the array of rank 0 into that of each rank."""

    def all_reduce(self, x: Array) -> None:
        """Replace a vector by the sum of all ranks' vectors, which has the same bits on each.

        It is `reduce_scatter`, and then `all_gather`.
        """

    def reduce_scatter(self, x: Array) -> None:
        """Replace this rank's `shard` of a vector by the sum; the rest is undefined afterwards."""

    def all_gather(self, x: Array) -> None:
        """Fill a vector: each rank gives its `shard` of it."""

    def join_shards(self, x: Array, n: int) -> Array | None:
        """Return the vector of n entries whose `shard` each rank gives: a copy, on rank 0 only."""
        return np.array(to_numpy(x))

    def concatenate(self, x: np.ndarray) -> np.ndarray:
        """Return the rows of all ranks' arrays, in the order of ranks."""
        return x

    @contextmanager
    def guard(self) -> Iterator[Self]:
        """Tell the other ranks of an error in the body, so that none waits for this one.

        They then raise `RankFailed`. If several ranks fail, the lowest of them raises its error.
        """
        yield self
