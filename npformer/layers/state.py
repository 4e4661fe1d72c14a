"""State: what a causal mixer keeps of the tokens so far, to continue with those that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from npformer.core.arrays import array_module, asarray, backend_of, to_numpy
from npformer.core.backend import Array
from npformer.core.context import Context

StateShapes = Mapping[str, tuple[int, ...]]
"""Names and shapes of what is kept of one sequence. Where it has an entry for each token, tokens
are the last axis but one."""


class State:
    """What is kept of the tokens so far, for a batch of sequences.

    A state never changes: more tokens make a new one. Both may share memory, in which the new
    tokens follow the old ones; if two continue from one state, the second works on a copy.

    Attributes
    ----------
    begin, stop : int or int array, shape (batch,)
        The position of the first of the newest tokens, and the one after the last. A number if it
        is the same in all rows.
    """

    def __init__(
        self,
        arrays: dict[str, Array],
        begin: Any = 0,
        stop: Any = 0,
        newest: list[int] | None = None,
    ) -> None:
        self.begin, self.stop = begin, stop
        self._arrays = arrays
        # shared by the states in the same memory: the number of the one that may write to it
        self._newest = [0] if newest is None else newest
        self._number = self._newest[0]

    @classmethod
    def empty(cls, kept: StateShapes, batch: int, like: Array) -> Self:
        """Return the state before the first token, with the backend and dtype of an array."""
        zeros = array_module(like).zeros
        arrays = {name: zeros((batch, *shape), like.dtype) for name, shape in kept.items()}
        return cls(arrays)

    @property
    def longest(self) -> int:
        """How many tokens the longest row has had."""
        return self.stop if isinstance(self.stop, int) else int(self.stop.max())

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(array.nbytes for array in self._arrays.values())

    def __getitem__(self, name: str) -> Array:
        """Return what is kept under a name."""
        return self._arrays[name]

    def get(self, name: str) -> Array | None:
        """Return what is kept under a name, None if there is nothing."""
        return self._arrays.get(name)

    def so_far(self, name: str) -> Array:
        """Return what is kept of each token so far, (batch, ..., length, features)."""
        return self._arrays[name][..., : self.longest, :]

    def positions(self, n: int, table: Array, axis: int = 0) -> Any:
        """Return the positions of the newest n tokens, as places in an axis of a table."""
        return positions(self.begin, n, table, axis)

    def seen(self, n: int, like: Array) -> Array | None:
        """Return which tokens the newest n see, (n, length) or (batch, 1, n, length); None: all."""
        if isinstance(self.begin, int):
            seen = None if n == 1 else np.tri(n, self.longest, self.begin, dtype=bool)
        else:
            at = self.begin[:, None] + np.arange(n)
            seen = np.arange(self.longest) <= at[:, None, :, None]
        return None if seen is None else on_backend_of(like, seen)

    def mask(self, like: Array) -> Array | None:
        """Return which tokens so far are not padding, (batch, length); None: all."""
        if isinstance(self.stop, int):
            return None
        return on_backend_of(like, np.arange(self.longest) < self.stop[:, None])

    def extend(
        self, n: int, context: Context, instead: Mapping[str, Array] | None = None, **new: Array
    ) -> State:
        """Return the state after n more tokens, or fewer in rows that end in padding.

        `new` holds what is kept of each of them, by name; `instead` holds arrays that replace
        those of the same name, for what does not grow with the tokens.
        """
        stop, kept = self._after(n, context)
        arrays, newest = self._memory_to_write()
        for name, entries in new.items():
            self._write(arrays[name], entries, n, kept)
        if instead is not None:
            arrays = {**arrays, **instead}
        return State(arrays, self.stop, stop, newest)

    def _memory_to_write(self) -> tuple[dict[str, Array], list[int]]:
        """Return arrays into which the next tokens may be written, and the newest state's number.

        They are this state's own, or copies if another state has gone on from here in its memory.
        """
        if self._newest[0] == self._number:
            self._newest[0] += 1
            return self._arrays, self._newest
        return {name: array.copy() for name, array in self._arrays.items()}, [0]

    def _write(self, array: Array, entries: Array, n: int, kept: np.ndarray | None) -> None:
        """Write what is kept of n new tokens, (batch, ..., n, features), behind those so far.

        `kept` says which of them are not padding; None: all.
        """
        if isinstance(self.stop, int) and kept is None:
            array[..., self.stop : self.stop + n, :] = entries
            return
        written = np.ones((len(entries), n), bool) if kept is None else kept
        rows, tokens = written.nonzero()
        slots = np.broadcast_to(self.stop, len(entries))[rows] + tokens
        tokens_second(array)[rows, slots] = tokens_second(entries)[rows, tokens]

    def rested(self) -> State:
        """Return the state without what no later token needs."""
        return self

    def select(self, rows: Any) -> State:
        """Return the state of some rows, in memory of its own: a search continues from the best.

        If these are all rows in their order, that is the state itself.
        """
        first = next(iter(self._arrays.values()), None)
        if first is None or np.array_equal(rows, np.arange(len(first))):
            return self
        taken = {name: array[on_backend_of(array, rows)] for name, array in self._arrays.items()}
        begin, stop = (at if isinstance(at, int) else at[rows] for at in (self.begin, self.stop))
        return State(taken, begin, stop)

    def part(self, prefix: str) -> State:
        """Return what is kept under names that begin like this, without their beginning."""
        cut = len(prefix)
        arrays = {n[cut:]: array for n, array in self._arrays.items() if n.startswith(prefix)}
        return State(arrays, self.begin, self.stop)

    def _after(self, n: int, context: Context) -> tuple[Any, np.ndarray | None]:
        """Return `stop` after n tokens, and which of them are not padding; None: all."""
        if context.mask is None:
            return self.stop + n, None
        kept = to_numpy(context.mask)
        stop = self.stop + kept.sum(axis=1)
        return (int(stop[0]) if (stop == stop[0]).all() else stop), kept


class States(tuple[Any, ...]):
    """The states of several layers, one after the other."""

    __slots__ = ()

    @property
    def stop(self) -> Any:
        """The position of the token that will follow: a number, or one for each row."""
        return self[0].stop

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(state.nbytes for state in self)

    def select(self, rows: Any) -> States:
        """Return the states of some rows, in memory of their own."""
        return States(state.select(rows) for state in self)


def positions(begin: Any, n: int, table: Array, axis: int = 0) -> Any:
    """Return the positions of n tokens, the first at `begin`, in a table's axis.

    `begin` is a number, or one for each row, (batch,). The result is a slice, or for several rows
    an array (batch, n). Padding past the end of the table gets its last position.
    """
    if isinstance(begin, int):
        return slice(begin, begin + n)
    at = np.minimum(begin[:, None] + np.arange(n), table.shape[axis] - 1)
    return on_backend_of(table, at)


def places(begin: Any, n: int) -> np.ndarray:
    """Return the positions of n tokens of each head: (n,), or (batch, 1, n) for several rows."""
    at = np.arange(n)
    return begin + at if isinstance(begin, int) else begin[:, None, None] + at


def take_positions(y: Array, at: Any) -> Array:
    """Return the tokens of each row at some positions, (batch, n, features); see `positions`."""
    if isinstance(at, slice):
        return y[:, at]
    return y[array_module(y).arange(len(y))[:, None], at]


def on_backend_of(like: Array, x: Any) -> Array:
    """Return an array on the backend of another."""
    return asarray(np.asarray(x), backend_of(like=like).name)


def tokens_second(array: Array) -> Array:
    """View (batch, ..., tokens, features) as (batch, tokens, ..., features)."""
    return array_module(array).moveaxis(array, -2, 1)
