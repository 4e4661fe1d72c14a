"""Which tokens of a batch are padding: one mask, shared by all layers of a call."""

from __future__ import annotations

import copy
from typing import Any

from npformer.core import checks
from npformer.core.arrays import backend_of, like, to_numpy
from npformer.core.backend import Array


class Padding:
    """The padding of a batch of sequences, from a mask of shape (batch, length): True = keep.

    The mask is on the backend of the sequences. If it came from the host, `on_host` is the same
    mask there, and finding lengths needs no copy. `hidden` says that the sequences have been set
    to 0 at padding, which may hold NaN, so that nothing needs to do so again.
    """

    def __init__(self, mask: Array, on_host: Array | None = None, hidden: bool = False) -> None:
        self.mask = mask
        self.hidden = hidden
        self._on_host = on_host
        self._groups: list[tuple[int, Array]] | None = None

    def __getitem__(self, rows: Any) -> Padding:
        """Return the padding of some samples: a slice, or an array of row numbers."""
        on_host = None if self._on_host is None else self._on_host[rows]
        return Padding(self.mask[rows], on_host, self.hidden)

    def as_hidden(self) -> Padding:
        """Return the same padding with `hidden` set."""
        other = copy.copy(self)
        other.hidden = True
        return other

    def on_host(self) -> Array:
        """Return the mask as a NumPy array; the first time, this waits for a GPU."""
        if self._on_host is None:
            self._on_host = to_numpy(self.mask)
        return self._on_host

    def rows_of_length(self) -> list[tuple[int, Array]]:
        """Return (length, rows) for every length above 0 that occurs, the shortest first.

        Padding must be at the end of each sequence.
        """
        if self._groups is None:
            mask = self.on_host()
            check_ends_in_padding(mask)
            lengths = mask.sum(axis=1)
            self._groups = [
                (length, like((lengths == length).nonzero()[0], self.mask))
                for length in sorted(set(lengths.tolist()))
                if length > 0
            ]
        return self._groups


def check_padding(mask: Array, x: Array) -> None:
    """Check the mask of sequences x, (batch, length, ...): boolean, one entry for each token."""
    backend_of(x=x, mask=mask)
    checks.mask("mask", mask, tuple(x.shape[:2]))


def check_ends_in_padding(mask: Array) -> None:
    """Check that no row of a mask, (batch, length) on the host, keeps a token after padding."""
    ends_in_padding = (mask[:, 1:] <= mask[:, :-1]).all(axis=1)
    if not ends_in_padding.all():
        row = int((~ends_in_padding).argmax())
        raise ValueError(
            f"mask keeps tokens after padding in row {row}; with padding='per_length' expected "
            "each sequence at the front and its padding at the end. Move the padding to the end"
        )
