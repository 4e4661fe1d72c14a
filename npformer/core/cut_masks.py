"""Dropout masks for a part of a batch, cut shorter: where they lie in those of the batch.

A part may have shorter samples than the whole batch. Its dropout is still that of the whole batch,
so a mask is drawn as large as it would be there, and its first entries along each axis are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Cut(NamedTuple):
    """Samples have `lengths` tokens in the part, and with padding `wholes` in the batch.

    Both have a number for each input. An axis of a mask counts as an input's tokens if it has that
    length. So no other axis that dropout acts on may have it, and it is not 1.
    """

    lengths: tuple[int, ...]
    wholes: tuple[int, ...]

    def undone(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape, (samples, rows of a sample, ...), as it would be in the whole batch."""
        whole_of = dict(zip(self.lengths, self.wholes, strict=True))
        return shape[0], *(whole_of.get(size, size) for size in shape[1:])


def split_by_sample(shape: tuple[int, ...], n_samples: int) -> tuple[int, ...]:
    """Return a shape as (samples, rows of a sample, ...).

    If samples do not have equally many rows, the rows belong to none: (1, rows, ...).
    """
    rows, *rest = shape or (1,)
    n = 1 if rows % n_samples else n_samples
    return n, rows // n, *rest


def corner(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the first entries of an array along each axis, as many as a shape says."""
    return x if x.shape == shape else x[tuple(map(slice, shape))]
