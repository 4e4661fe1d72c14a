"""All samples of a training or an evaluation, in memory; `stored_samples` has those in files.

Both have the same interface, so callers need not know which of the two they have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.core.inputs import Sequences
from npformer.data.batch import Batch
from npformer.models.losses import Loss


class Samples:
    """Samples with targets, checked.

    Attributes
    ----------
    notes : list
        What the model's `note` returned for all pieces of the samples.
    """

    def __init__(self, batch: Batch, notes: list[Any]) -> None:
        self.notes = notes
        self._batch = batch

    def __len__(self) -> int:
        return len(self._batch)

    def of_rows(self, rows: Any) -> Batch:
        """Return some samples: a slice, or an array of row numbers."""
        return self._batch.of_rows(rows)

    def expect(self, rows: Callable[[], np.ndarray]) -> None:
        """Say which samples `of_rows` will be asked for next: in memory nothing has to be done."""

    def subset(self, rows: np.ndarray) -> Samples:
        """Return some of the samples, as if they were all."""
        return Samples(self._batch.of_rows(rows), self.notes)

    def pieces(self, rows: slice) -> Iterator[tuple[int, Batch]]:
        """Yield samples, as many at a time as fit into memory, and the number of the first."""
        if rows.start < rows.stop:
            yield rows.start, self.of_rows(rows)

    @property
    def y(self) -> Array | None:
        """The targets of all samples; None if tokens have them, and they stay in files."""
        return self._batch.y

    @cached_property
    def padded_lengths(self) -> tuple[int, ...]:
        """The number of tokens of a sample in each input, padding included."""
        return tuple(each.length for each in self._batch.inputs)

    @cached_property
    def lengths(self) -> np.ndarray | None:
        """The lengths of samples without padding, (n, n_inputs); None if there is no padding."""
        padded = any(each.padding is not None for each in self._batch.inputs)
        return self._batch.lengths() if padded else None

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks must call it."""
        return np.asarray(self._batch.counts_for(loss))

    def sum_of(self, numbers: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Return the sum over all samples of some numbers. All ranks must call it."""
        return numbers(self._batch)

    @cached_property
    def in_short(self) -> str:
        """Shapes, and a digest of all samples: other samples or another order change it."""
        batch, found = self._batch, hashlib.sha256()
        arrays = [a for each in batch.inputs for a in (each.x, each.mask, each.types)]
        for array in (*arrays, *batch.targets()):
            if array is None:
                found.update(b"none")
            else:
                found.update(f"{array.dtype.str}{array.shape}".encode())
                found.update(np.ascontiguousarray(array).data)
        return in_words(len(self), batch.inputs, found)


def in_words(n: int, inputs: tuple[Sequences, ...], digest: Any) -> str:
    """Return what `Samples.in_short` says of n samples, whose inputs have some shapes."""
    shapes = " and ".join(str(tuple(each.x.shape[1:])) for each in inputs)
    return f"{n} samples of shape {shapes} (digest {digest.hexdigest()[:16]})"
