"""Split the scores of one call into tiles that stay in the cache."""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from npformer.core import Array
from npformer.engine.cpu.rows import read_only, scratch
from npformer.functional.averaging import window_reach

TILE = 512
"""Queries and keys per tile of a long sequence: 512^2 float32 numbers are 1 MiB."""

SMALLEST, FEW_WINDOWS = 64, 4
"""In a sequence of at least `FEW_WINDOWS` windows, tiles are as large as a window, but not smaller
than `SMALLEST`."""

SCORES = 1 << 18
"""Short sequences: several samples and heads form a tile of up to this many scores."""

Group = tuple[slice, slice]
"""Samples and heads that are computed at the same time."""


class Place(NamedTuple):
    """The position of a tile: its queries and its keys."""

    queries: slice
    keys: slice
    band: tuple[int, int] | None
    """(low, high): query i of the tile sees its keys i + low to i + high. None: each sees all."""
    first_of_queries: bool
    """Whether it is the first tile with these queries."""
    first_of_keys: bool
    """Whether it is the first tile with these keys."""


Tile = tuple[Group, Place]
"""A place in the scores of a group."""


class Tiling:
    """The tiles of scores of shape (batch, n_heads, length, length).

    Attributes
    ----------
    groups : list of Group
        Together, all samples and heads, each once.
    places : list of Place
        The places of each group in which some query sees a key, row by row.
    largest : tuple of int
        Shape of the largest tile.
    whole_rows : bool
        Whether a tile has all keys of its queries.
    """

    def __init__(
        self, batch: int, n_heads: int, length: int, causal: bool, window: int | None = None
    ) -> None:
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
        self.places = list(self._places(length, *window_reach(causal, window)))

    def _places(self, length: int, behind: int | None, ahead: int | None) -> Iterator[Place]:
        """Yield places, with the number of tokens behind and ahead that a query sees."""
        behind, ahead = (length if n is None else n for n in (behind, ahead))
        sides = [slice(n, min(n + self.side, length)) for n in range(0, length, self.side)]
        for queries in sides:
            first, last = self._side_of(queries.start - behind), queries.stop - 1 + ahead
            for keys in sides[first : last // self.side + 1]:
                apart = queries.start - keys.start
                low, high = apart - behind, apart + ahead
                rows, columns = queries.stop - queries.start, keys.stop - keys.start
                band = None if low + rows <= 1 and high >= columns - 1 else (low, high)
                begins = queries is sides[self._side_of(keys.start - ahead)]
                yield Place(queries, keys, band, keys is sides[first], begins)

    def _side_of(self, token: int) -> int:
        """Return the number of the side that contains a token; 0 before the first."""
        return max(token, 0) // self.side

    def groups_by_heads(self) -> list[list[Group]]:
        """Return one list of groups for each set of heads, with samples in order."""
        groups_of_heads: dict[int, list[Group]] = {}
        for samples, heads in self.groups:
            groups_of_heads.setdefault(heads.start, []).append((samples, heads))
        return list(groups_of_heads.values())

    def tiles(self, groups: Iterable[Group], reference: Array) -> Iterator[Tile]:
        """Return the tiles of some groups; the first ones stand for all in arrays without numbers.

        `reference` is one of the arrays.
        """
        tiles = product(groups, self.places)
        return tiles if type(reference) is np.ndarray else islice(tiles, 2)

    def memory(self, n: int, reference: Array) -> Array:
        """Return scratch memory, which the next call may overwrite, for n of the largest tiles."""
        return scratch(n * math.prod(self.largest), reference.dtype).reshape(n, *self.largest)


tiling_of = lru_cache(maxsize=16)(Tiling)
"""A `Tiling`, the same for the same arguments."""


def corner(scratch: Array, shape: tuple[int, ...]) -> Array:
    """Return the part of the scratch memory that a tile of this shape takes, C-contiguous."""
    if scratch.shape == shape:
        return scratch
    return scratch.reshape(-1)[: math.prod(shape)].reshape(shape)


@lru_cache(maxsize=64)
def band_of(queries: int, keys: int, low: int, high: int) -> Array:
    """Return whether query i of a tile sees key j, i + low <= j <= i + high; read-only."""
    return read_only(np.tri(queries, keys, high, bool) & ~np.tri(queries, keys, low - 1, bool))


def slice_group(x: Array, group: Group) -> Array:
    """Return a group's slice of an array, which may have a single sample or head for all."""
    samples, heads = group
    if x.shape[0] == 1:
        samples = slice(None)
    if x.shape[1] == 1:
        heads = slice(None)
    return x[samples, heads]
