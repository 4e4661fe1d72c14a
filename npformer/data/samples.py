"""All samples of a training or an evaluation, in memory; `stored_samples` has those in files.

Both answer the same questions, so nobody who asks has to know which of the two they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.data.batch import Batch
from npformer.losses import Loss


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

    def subset(self, rows: np.ndarray) -> Samples:
        """Return some of the samples, as all there are."""
        return Samples(self._batch.of_rows(rows), self.notes)

    def pieces(self, rows: slice) -> Iterator[tuple[int, Batch]]:
        """Yield samples, as many at a time as fit into memory, and the number of the first."""
        if rows.start < rows.stop:
            yield rows.start, self.of_rows(rows)

    @property
    def y(self) -> Array | None:
        """The targets of all samples; None if tokens have them, and they stay in files."""
        return self._batch.y

    @property
    def padded_lengths(self) -> tuple[int, ...]:
        """The number of tokens of a sample in each input, padding included."""
        return tuple(each.length for each in self._batch.inputs)

    @cached_property
    def lengths(self) -> np.ndarray | None:
        """The lengths of samples without padding, (n, n_inputs); None if there is no padding."""
        padded = any(each.padding is not None for each in self._batch.inputs)
        return self._batch.lengths() if padded else None

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks ask for it."""
        return np.asarray(self._batch.counts_for(loss))

    def sum_of(self, numbers: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Return the sum over all samples of some numbers. All ranks ask for it."""
        return numbers(self._batch)

    @cached_property
    def digest(self) -> str:
        """A digest of all samples, and of their shapes and dtypes."""
        found = hashlib.sha256()
        for each in self._batch.inputs:
            mask = None if each.padding is None else each.padding.mask
            for array in (each.x, mask, each.types):
                _add(found, array)
        for array in self._batch.targets():
            _add(found, array)
        return found.hexdigest()


def in_short(samples: Samples, n_looked_at: int = 64) -> str:
    """Return shapes and a digest: of all targets in memory, and of some of the samples.

    Those of another order or another file differ in it.
    """
    n = len(samples)
    some = samples.of_rows(np.unique(np.linspace(0, n - 1, min(n, n_looked_at)).astype(int)))
    found, shapes = hashlib.sha256(), []
    _add(found, samples.y)
    for each in some.inputs:
        mask = None if each.padding is None else each.padding.on_host()
        shapes.append(str(tuple(each.x.shape[1:])))
        for array in (each.x, mask, each.types):
            _add(found, array)
    for array in some.targets():
        _add(found, array)
    return f"{n} samples of shape {' and '.join(shapes)} (digest {found.hexdigest()[:8]})"


def _add(digest: Any, array: Any) -> None:
    """Add dtype, shape and bytes of an array to a digest."""
    if array is None:
        digest.update(b"none")
    else:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
