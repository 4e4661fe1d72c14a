"""How the scores of one call are split into tiles that stay in the cache."""

import math
from collections.abc import Iterable, Iterator

from npformer.core import Array
from npformer.engine.context import EngineContext

TILE = 512
"""Queries and keys per tile of a long sequence: 512^2 float32 numbers are 1 MiB."""

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

    def __init__(self, batch: int, n_heads: int, length: int, causal: bool) -> None:
        self.length, self.causal = length, causal
        self.whole_rows = length <= TILE
        side = min(length, TILE)
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
        """Yield the tiles of some groups, except those that lie wholly in the future."""
        for group in groups:
            for queries in self._slices(self.length):
                for keys in self._slices(queries.stop if self.causal else self.length):
                    yield group, queries, keys

    def _slices(self, stop: int) -> Iterator[slice]:
        for start in range(0, stop, TILE):
            yield slice(start, min(start + TILE, self.length))

    def on_diagonal(self, tile: Tile) -> bool:
        """Return whether some queries of a tile may not see some of its keys."""
        _, queries, keys = tile
        return self.causal and queries.start == keys.start

    def scratch(self, context: EngineContext, reference: Array) -> Array:
        """Return memory for the largest tile."""
        return context.empty(self.largest, reference)


def corner(scratch: Array, shape: tuple[int, ...]) -> Array:
    """Return the part of the scratch memory that a tile of this shape takes, C-contiguous."""
    return scratch.reshape(-1)[: math.prod(shape)].reshape(shape)


def of_group(x: Array, group: Group) -> Array:
    """Return a group's part of an array, which may have one sample or one head for all."""
    whole = slice(None)
    samples, heads = group
    return x[whole if x.shape[0] == 1 else samples, whole if x.shape[1] == 1 else heads]
