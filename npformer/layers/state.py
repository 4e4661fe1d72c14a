"""State: what a causal mixer stores of the tokens so far, to continue with the next ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from npformer.core.arrays import array_module, asarray, backend_of, to_numpy
from npformer.core.backend import Array
from npformer.core.context import Context

StateShapes = Mapping[str, tuple[int, ...]]
"""Names and shapes of the arrays stored for one sequence. In arrays with an entry per token, tokens
are the last axis but one."""


class State:
    """What is stored of the tokens so far, for a batch of sequences.

    A state never changes: more tokens make a new state. Both may share memory, in which the new
    tokens follow the old ones. If one state is extended twice, the second extension gets a copy.

    Attributes
    ----------
    begin, stop : int or int array, shape (batch,)
        The position of the first of the newest tokens, and the one after the last. A number if all
        rows have the same.
    """

    def __init__(
        self,
        arrays: dict[str, Array],
        begin: Any = 0,
        stop: Any = 0,
        newest: list[int] | None = None,
    ) -> None:
        self.begin = begin
        self.stop = stop
        self._arrays = arrays
        # shared by all states in this memory: the number of the state that may write to it
        self._newest = [0] if newest is None else newest
        self._number = self._newest[0]

    @classmethod
    def empty(cls, shapes: StateShapes, batch: int, like: Array) -> Self:
        """Return the state before the first token, with the backend and dtype of `like`."""
        xp = array_module(like)
        arrays = {name: xp.zeros((batch, *shape), like.dtype) for name, shape in shapes.items()}
        return cls(arrays)

    @property
    def longest(self) -> int:
        """The number of tokens so far in the longest row."""
        return self.stop if isinstance(self.stop, int) else int(self.stop.max())

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(array.nbytes for array in self._arrays.values())

    def __getitem__(self, name: str) -> Array:
        """Return the array of this name."""
        return self._arrays[name]

    def get(self, name: str) -> Array | None:
        """Return the array of this name, or None."""
        return self._arrays.get(name)

    def so_far(self, name: str) -> Array:
        """Return an array's entries for the tokens so far, (batch, ..., length, features)."""
        return self._arrays[name][..., : self.longest, :]

    def positions(self, n: int, table: Array, axis: int = 0) -> Any:
        """Return the positions of the newest n tokens, as indices into an axis of a table."""
        return positions(self.begin, n, table, axis)

    def causal_mask(self, n: int, like: Array) -> Array | None:
        """Return which tokens the newest n see, (n, length) or (batch, 1, n, length); None: all."""
        if not isinstance(self.begin, int):
            positions_of_new = self.begin[:, None] + np.arange(n)
            mask = np.arange(self.longest) <= positions_of_new[:, None, :, None]
            return move_to_backend(like, mask)
        if n == 1:
            return None
        return move_to_backend(like, np.tri(n, self.longest, self.begin, dtype=bool))

    def mask(self, like: Array) -> Array | None:
        """Return which tokens so far are not padding, (batch, length); None: all."""
        if isinstance(self.stop, int):
            return None
        return move_to_backend(like, np.arange(self.longest) < self.stop[:, None])

    def extend(
        self, n: int, context: Context, instead: Mapping[str, Array] | None = None, **new: Array
    ) -> State:
        """Return the state after n more tokens, or fewer in rows that end in padding.

        `new` holds the entries of these tokens, by name. `instead` holds arrays that replace those
        of the same name, for arrays that do not grow with the tokens.
        """
        stop, mask = self._advance(n, context)
        arrays, newest = self._memory_to_write()
        for name, entries in new.items():
            self._write(arrays[name], entries, n, mask)
        if instead is not None:
            arrays = {**arrays, **instead}
        return State(arrays, self.stop, stop, newest)

    def _memory_to_write(self) -> tuple[dict[str, Array], list[int]]:
        """Return arrays to write the next tokens into, and the shared number of the newest state.

        The arrays are this state's, or copies if this state has been extended before.
        """
        if self._newest[0] == self._number:
            self._newest[0] += 1
            return self._arrays, self._newest
        return {name: array.copy() for name, array in self._arrays.items()}, [0]

    def _write(self, array: Array, entries: Array, n: int, mask: np.ndarray | None) -> None:
        """Write the entries of n new tokens, (batch, ..., n, features), after those so far.

        `mask` is False for new tokens that are padding; None: none is.
        """
        if isinstance(self.stop, int) and mask is None:
            array[..., self.stop : self.stop + n, :] = entries
            return
        if mask is None:
            mask = np.ones((len(entries), n), bool)
        rows, tokens = mask.nonzero()
        slots = np.broadcast_to(self.stop, len(entries))[rows] + tokens
        tokens_second(array)[rows, slots] = tokens_second(entries)[rows, tokens]

    def trim(self) -> State:
        """Return the state without entries that no later token needs."""
        return self

    def select(self, rows: Any) -> State:
        """Return the state of some rows, as a copy: a search continues from the best ones.

        For all rows in their order, this is the state itself.
        """
        first = next(iter(self._arrays.values()), None)
        if first is None or np.array_equal(rows, np.arange(len(first))):
            return self
        arrays = {name: array[move_to_backend(array, rows)] for name, array in self._arrays.items()}
        begin = self.begin if isinstance(self.begin, int) else self.begin[rows]
        stop = self.stop if isinstance(self.stop, int) else self.stop[rows]
        return State(arrays, begin, stop)

    def select_prefix(self, prefix: str) -> State:
        """Return the arrays whose names begin with a prefix, under names without it."""
        arrays = {}
        for name, array in self._arrays.items():
            if name.startswith(prefix):
                arrays[name.removeprefix(prefix)] = array
        return State(arrays, self.begin, self.stop)

    def _advance(self, n: int, context: Context) -> tuple[Any, np.ndarray | None]:
        """Return `stop` after n more tokens, and their padding mask on the host, if any."""
        if context.mask is None:
            return self.stop + n, None
        mask = to_numpy(context.mask)
        stop = self.stop + mask.sum(axis=1)
        if (stop == stop[0]).all():
            return int(stop[0]), mask
        return stop, mask


class States(tuple[Any, ...]):
    """The states of several layers, one after the other."""

    __slots__ = ()

    @property
    def stop(self) -> Any:
        """The position of the next token: a number, or one for each row."""
        return self[0].stop

    @property
    def nbytes(self) -> int:
        """Memory of all states, in bytes."""
        return sum(state.nbytes for state in self)

    def select(self, rows: Any) -> States:
        """Return the states of some rows, as copies."""
        return States(state.select(rows) for state in self)


def positions(begin: Any, n: int, table: Array, axis: int = 0) -> Any:
    """Return the positions of n tokens, the first at `begin`, as indices into an axis of a table.

    `begin` is a number, or one for each row, (batch,). The result is a slice, or for one begin per
    row an array (batch, n). Padding past the end of the table gets its last position.
    """
    if isinstance(begin, int):
        return slice(begin, begin + n)
    at = np.minimum(begin[:, None] + np.arange(n), table.shape[axis] - 1)
    return move_to_backend(table, at)


def places(begin: Any, n: int) -> np.ndarray:
    """Return the positions of n tokens of each head: (n,), or (batch, 1, n) for several rows."""
    at = np.arange(n)
    return begin + at if isinstance(begin, int) else begin[:, None, None] + at


def take_positions(y: Array, at: Any) -> Array:
    """Return the tokens of each row at some positions, (batch, n, features); see `positions`."""
    if isinstance(at, slice):
        return y[:, at]
    return y[array_module(y).arange(len(y))[:, None], at]


def move_to_backend(like: Array, x: Any) -> Array:
    """Return x on the backend of `like`."""
    return asarray(np.asarray(x), backend_of(like=like).name)


def tokens_second(array: Array) -> Array:
    """View (batch, ..., tokens, features) as (batch, tokens, ..., features)."""
    return array_module(array).moveaxis(array, -2, 1)
