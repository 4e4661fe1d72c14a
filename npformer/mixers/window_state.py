"""WindowState: a state of the last tokens alone, for local attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core.arrays import array_module
from npformer.core.backend import Array
from npformer.core.context import Context
from npformer.layers.state import State, on_backend_of, tokens_second


class WindowState(State):
    """A `State` of the last `window` tokens, the newest of them last.

    New tokens follow those that were kept: entry c is of the token at position begin - window + c,
    and of none if that is below 0. `rested` then drops what no later token sees.
    """

    def __init__(
        self, arrays: dict[str, Array], begin: Any = 0, stop: Any = 0, window: int | None = None
    ) -> None:
        super().__init__(arrays, begin, stop)
        self.window = next(iter(arrays.values())).shape[-2] if window is None else window

    def so_far(self, name: str) -> Array:
        """Return what is kept, and what was new last."""
        return self[name]

    def seen(self, n: int, like: Array) -> Array:
        """Return which entries the newest n tokens see, (n, entries) or (batch, 1, n, entries)."""
        query, entry = np.arange(n)[:, None], np.arange(self.window + n)
        begin = self.begin if isinstance(self.begin, int) else self.begin[:, None, None, None]
        near = (query < entry) & (entry <= query + self.window)
        return on_backend_of(like, near & (entry >= self.window - begin))

    def extend(
        self, n: int, context: Context, instead: Mapping[str, Array] | None = None, **new: Array
    ) -> WindowState:
        """Return the state with n more tokens behind those that were kept."""
        stop, _ = self._after(n, context)
        join = array_module(next(iter(new.values()))).concatenate
        arrays = {name: join((self[name], entries), axis=-2) for name, entries in new.items()}
        return WindowState(arrays, self.stop, stop, self.window)

    def rested(self) -> WindowState:
        """Return the state of the last `window` tokens."""
        arrays = {}
        for name, array in self._arrays.items():
            first = np.broadcast_to(self.stop - self.begin, len(array))[:, None]
            at = np.arange(len(array))[:, None], first + np.arange(self.window)
            arrays[name] = array_module(array).moveaxis(tokens_second(array)[at], 1, -2)
        return WindowState(arrays, self.begin, self.stop, self.window)

    def select(self, rows: Any) -> WindowState:
        """Return the state of some rows, as `State.select`."""
        taken = super().select(rows)
        return WindowState(taken._arrays, taken.begin, taken.stop, self.window)
