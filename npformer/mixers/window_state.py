"""WindowState: a state of the last tokens only, for local attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core.arrays import array_module
from npformer.core.backend import Array
from npformer.core.context import Context
from npformer.layers.state import State, move_to_backend, tokens_second


class WindowState(State):
    """A `State` of the last `window` tokens, the newest of them last.

    New tokens follow the stored ones: entry c belongs to the token at position begin - window + c,
    or to none if that is below 0. `trim` then drops entries that no later token sees.
    """

    def __init__(
        self, arrays: dict[str, Array], begin: Any = 0, stop: Any = 0, window: int | None = None
    ) -> None:
        super().__init__(arrays, begin, stop)
        self.window = next(iter(arrays.values())).shape[-2] if window is None else window

    def so_far(self, name: str) -> Array:
        """Return the stored entries, followed by the newest ones."""
        return self[name]

    def causal_mask(self, n: int, like: Array) -> Array:
        """Return which entries the newest n tokens see, (n, entries) or (batch, 1, n, entries)."""
        query = np.arange(n)[:, None]
        entry = np.arange(self.window + n)
        begin = self.begin if isinstance(self.begin, int) else self.begin[:, None, None, None]
        is_in_window = (query < entry) & (entry <= query + self.window)
        is_token = entry >= self.window - begin
        return move_to_backend(like, is_in_window & is_token)

    def extend(
        self, n: int, context: Context, instead: Mapping[str, Array] | None = None, **new: Array
    ) -> WindowState:
        """Return the state with n more tokens after the stored ones."""
        stop, _ = self._advance(n, context)
        arrays = {}
        for name, entries in new.items():
            xp = array_module(entries)
            arrays[name] = xp.concatenate((self[name], entries), axis=-2)
        return WindowState(arrays, self.stop, stop, self.window)

    def trim(self) -> WindowState:
        """Return the state of the last `window` tokens."""
        arrays = {}
        for name, array in self._arrays.items():
            first = np.broadcast_to(self.stop - self.begin, len(array))[:, None]
            at = np.arange(len(array))[:, None], first + np.arange(self.window)
            arrays[name] = array_module(array).moveaxis(tokens_second(array)[at], 1, -2)
        return WindowState(arrays, self.begin, self.stop, self.window)

    def select(self, rows: Any) -> WindowState:
        """Return the state of some rows, as `State.select`."""
        state = super().select(rows)
        return WindowState(state._arrays, state.begin, state.stop, self.window)
