"""How the scores of one call are split into tiles that stay in the cache."""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import read_only
from npformer.functional.averaging import reach

TILE = 512
"""Queries and keys per tile of a long sequence: 512^2 float32 numbers are 1 MiB."""

SMALLEST, FEW_WINDOWS = 64, 4
"""With a window tiles are as large as it is, but not smaller, if a sequence has as many windows."""

SCORES = 1 << 18
"""Short sequences: several samples and heads form a tile of up to this many scores."""

Group = tuple[slice, slice]
"""Samples and heads that are computed together."""

Tile = tuple[Group, slice, slice]
"""Some queries and some keys of a group."""


class Tiling:
    """The tiles of scores of shape (batch, n_heads, length, length).

    Attributes
    ----------
    groups : list of Group
        They cover all samples and heads, each once.
    largest : tuple of int
        Shape of the largest tile.
    whole_rows : bool
        Whether a tile has all keys of its queries.
    """

    def __init__(
        self, batch: int, n_heads: int, length: int, causal: bool, window: int | None = None
    ) -> None:
        behind, ahead = reach(causal, window)
        self.length = length
        self.behind = length if behind is None else behind
        self.ahead = length if ahead is None else ahead
        few = window is not None and length >= FEW_WINDOWS * window
        self.side = max(SMALLEST, min(TILE, window)) if few and window else TILE
        self.whole_rows = length <= self.side
        side = min(length, self.side)
        at_once = max(1, SCORES // max(side * side, 1))  # pairs of a sample and a head
        heads = max(1, min(n_heads, at_once))
        samples = max(1, min(batch, at_once // heads)) if heads == n_heads else 1
        self.largest = samples, heads, side, side
        self.groups = [
            (slice(sample, min(sample + samples, batch)), slice(head, min(head + heads, n_heads)))
            for sample in range(0, batch, samples)
            for head in range(0, n_heads, heads)
        ]

    def groups_by_heads(self) -> list[list[Group]]:
        """Return one list of groups for each set of heads, with samples in order."""
        found: dict[int, list[Group]] = {}
        for samples, heads in self.groups:
            found.setdefault(heads.start, []).append((samples, heads))
        return list(found.values())

    def tiles(self, groups: Iterable[Group]) -> Iterator[Tile]:
        """Yield the tiles of some groups, except those in which no query sees a key."""
        for group in groups:
            for queries in self._slices(0, self.length):
                stop = min(queries.stop + self.ahead, self.length)
                for keys in self._slices(self._tile_of(queries.start - self.behind), stop):
                    yield group, queries, keys

    def _slices(self, start: int, stop: int) -> Iterator[slice]:
        for first in range(start, stop, self.side):
            yield slice(first, min(first + self.side, self.length))

    def _tile_of(self, token: int) -> int:
        """Return where the tile begins in which a token is; before the first, 0."""
        return max(token, 0) // self.side * self.side

    def first_of_queries(self, tile: Tile) -> bool:
        """Return whether this is the first tile with these queries."""
        _, queries, keys = tile
        return bool(keys.start == self._tile_of(queries.start - self.behind))

    def first_of_keys(self, tile: Tile) -> bool:
        """Return whether this is the first tile with these keys."""
        _, queries, keys = tile
        return bool(queries.start == self._tile_of(keys.start - self.ahead))

    def band(self, tile: Tile) -> tuple[int, int] | None:
        """Return (low, high): query i of the tile sees its keys i + low to i + high.

        None if all of its queries see all of its keys.
        """
        _, queries, keys = tile
        apart = queries.start - keys.start
        low, high = apart - self.behind, apart + self.ahead
        last_query, last_key = queries.stop - queries.start - 1, keys.stop - keys.start - 1
        return None if low + last_query <= 0 and high >= last_key else (low, high)

    def scratch(self, context: EngineContext, reference: Array) -> Array:
        """Return memory for the largest tile."""
        return context.empty(self.largest, reference)


def corner(scratch: Array, shape: tuple[int, ...]) -> Array:
    """Return the part of the scratch memory that a tile of this shape takes, C-contiguous."""
    return scratch.reshape(-1)[: math.prod(shape)].reshape(shape)


@lru_cache(maxsize=64)
def band_of(queries: int, keys: int, low: int, high: int) -> Array:
    """Return whether query i of a tile sees key j, i + low <= j <= i + high; read-only."""
    return read_only(np.tri(queries, keys, high, bool) & ~np.tri(queries, keys, low - 1, bool))


def of_group(x: Array, group: Group) -> Array:
    """Return a group's part of an array, which may have one sample or one head for all."""
    whole = slice(None)
    samples, heads = group
    return x[whole if x.shape[0] == 1 else samples, whole if x.shape[1] == 1 else heads]
