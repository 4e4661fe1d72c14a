"""Batches of samples of similar length, so that little of them is padding.

The longest sample of a batch decides its time. So samples of similar length go into one batch, and
columns that are padding in all of them are left out. A layer that skips padding returns the same
numbers with less of it, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core.inputs import Sequences
from npformer.models.batch import Batch

WINDOW = 32
"""Number of batches whose samples are sorted together in training: enough for little padding, few
enough that batches differ from epoch to epoch."""


def shuffle_by_length(lengths: np.ndarray, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random order in which each batch has samples of similar length.

    All samples are shuffled, and sorted by length in windows of `WINDOW` batches; then complete
    batches are shuffled. Only the last batch may be smaller.
    """
    order = rng.permutation(len(lengths))
    size = WINDOW * batch_size
    sorted_windows = []
    for start in range(0, len(order), size):
        window = order[start : start + size]
        sorted_windows.append(window[np.argsort(lengths[window], kind="stable")])
    order = np.concatenate(sorted_windows)
    n_batches = len(order) // batch_size
    rest = order[n_batches * batch_size :]
    batches = order[: n_batches * batch_size].reshape(n_batches, batch_size)
    return np.concatenate([batches[rng.permutation(n_batches)].ravel(), rest])


class LongestFirst:
    """Batches of samples for a prediction, the longest first; attribute `batch` has all samples.

    Parameters
    ----------
    inputs : tuple of Sequences
        All samples.
    batch_size : int
    by_length : bool
        Whether to sort samples and to cut padding, if there is any and all arrays are on the host.
    tokens : int, optional
        The most tokens in a batch, padding included; a batch of one sample may have more. None: no
        limit.
    """

    def __init__(
        self,
        inputs: tuple[Sequences, ...],
        batch_size: int,
        by_length: bool,
        tokens: int | None = None,
    ) -> None:
        self.batch = Batch(inputs)
        self._size = batch_size
        self._tokens = tokens
        self._lengths = np.full(len(self.batch), self.batch.n_tokens)  # after cutting
        self._order: np.ndarray | None = None
        masks = [sequences.mask for sequences in inputs if sequences.mask is not None]
        on_host = all(isinstance(x, np.ndarray) for x in (*self.batch.arrays(), *masks))
        if by_length and masks and on_host:
            self._lengths = self.batch.lengths().sum(axis=1)
            self._order = np.argsort(-self._lengths, kind="stable")

    def __len__(self) -> int:
        return len(self.batch)

    def mean_length(self) -> int:
        """Return the mean number of tokens of a sample, after cutting."""
        return -(-int(self._lengths.sum()) // max(len(self), 1))

    def share(self, k: int, n: int) -> Iterator[Batch]:
        """Yield the batches of the k-th of n workers; without samples, one empty batch."""
        rows = self._rows(k, n)
        if not len(self):
            yield self.batch
        while len(rows):
            batch_rows: Any = rows[: self._batch_size_from(rows[0])]
            rows = rows[len(batch_rows) :]
            if self._order is not None:
                yield self.batch.select(batch_rows).cut()
            else:  # neighbours: a slice makes a view
                first, last = int(batch_rows[0]), int(batch_rows[-1])
                yield self.batch.select(slice(first, last + 1))

    def restore_order(self, shares: list[list[np.ndarray]]) -> np.ndarray:
        """Return the results of all workers, joined, in the order of the samples."""
        results = [result for results_of_worker in shares for result in results_of_worker]
        joined = results[0] if len(results) == 1 else np.concatenate(results)
        if self._order is None:
            return joined
        n_workers = len(shares)
        rows = np.concatenate([self._rows(k, n_workers) for k in range(n_workers)])
        restored = np.empty_like(joined)
        restored[rows] = joined
        return restored

    def _batch_size_from(self, longest: int) -> int:
        """Return the size of a batch whose first and longest sample this is."""
        if self._tokens is None:
            return self._size
        return min(self._size, max(1, self._tokens // int(self._lengths[longest])))

    def _rows(self, k: int, n: int) -> np.ndarray:
        """Return the rows of the k-th of n workers: neighbours, or every n-th by length."""
        if self._order is not None:
            return self._order[k::n]
        return np.arange(k * len(self) // n, (k + 1) * len(self) // n)
