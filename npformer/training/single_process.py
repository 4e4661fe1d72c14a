"""A training's only process, and the choice between it and several ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from npformer.training.distributed import Communicator

Value = TypeVar("Value")

Processes: TypeAlias = "SingleProcess | Communicator"
"""The processes that compute a training: this one alone, or several ranks."""


class SingleProcess:
    """What a training asks of the processes that compute it, if there is only one.

    `npformer.distributed.Communicator` is the same for several, which are then called ranks.

    Attributes
    ----------
    rank, size : int
        The number of this process, counted from 0, and how many there are.
    """

    rank = 0
    size = 1

    def shard(self, n: int) -> slice:
        """Return the part of n entries that belongs to this process: all."""
        return slice(0, n)

    def gather(self, value: Value) -> list[Value]:
        """Return what each process gave."""
        return [value]

    def first(self, value: Value) -> Value:
        """Return what the first process gave."""
        return value

    def unlike_first(self, value: Value) -> list[tuple[int, Value, Value]]:
        """Return each process that gave something else than the first: none."""
        return []

    def concatenate(self, x: np.ndarray) -> np.ndarray:
        """Return the rows of all processes' arrays."""
        return x


@contextmanager
def processes_of(communicator: Any) -> Iterator[Processes]:
    """Yield the processes of a training, by what `fit` was given; an error reaches all of them."""
    if communicator is None:
        yield SingleProcess()
        return
    from npformer.training.distributed import communicator_of  # when needed

    with communicator_of(communicator).guard() as ranks:
        yield ranks
