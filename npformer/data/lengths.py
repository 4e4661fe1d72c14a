"""Batches of samples of similar length, so that little of them is padding.

A batch takes the time of its longest sample, padding included. So samples of similar length go
together, and columns that are padding in all of them are left out. A layer that skips padding gives
the same numbers with less of it, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core.inputs import Sequences
from npformer.models.batch import Batch

WINDOW = 32
"""Batches among which samples are sorted in training: enough for little padding, and few enough
that batches differ from epoch to epoch."""


def shuffled_by_length(
    lengths: np.ndarray, batch_size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a random order in which each batch has samples of similar length.

    All samples are shuffled. In windows of `WINDOW` batches they are sorted by length; then whole
    batches are shuffled. Only the last batch may be smaller.
    """
    order = rng.permutation(len(lengths))
    size = WINDOW * batch_size
    windows = [order[start : start + size] for start in range(0, len(order), size)]
    order = np.concatenate([w[np.argsort(lengths[w], kind="stable")] for w in windows])
    whole = len(order) // batch_size
    batches = order[: whole * batch_size].reshape(whole, batch_size)
    return np.concatenate([batches[rng.permutation(whole)].ravel(), order[whole * batch_size :]])


class LongestFirst:
    """Samples in batches for a prediction, the longest first; `batch` has all of them.

    Parameters
    ----------
    inputs : tuple of Sequences
        All samples.
    batch_size : int
    by_length : bool
        Whether to sort samples and to cut padding, if there is any and all is on the host.
    tokens : int, optional
        The most tokens in a batch, padding included, unless it has one sample; None: no limit.
    """

    def __init__(
        self,
        inputs: tuple[Sequences, ...],
        batch_size: int,
        by_length: bool,
        tokens: int | None = None,
    ) -> None:
        self.batch, self._size, self._tokens = Batch(inputs), batch_size, tokens
        self._lengths = np.full(len(self.batch), self.batch.n_tokens)  # after cutting
        self._order: np.ndarray | None = None
        masks = [each.mask for each in inputs if each.mask is not None]
        on_host = all(isinstance(x, np.ndarray) for x in (*self.batch.arrays(), *masks))
        if by_length and masks and on_host:
            self._lengths = self.batch.lengths().sum(axis=1)
            self._order = np.argsort(-self._lengths, kind="stable")

    def __len__(self) -> int:
        return len(self.batch)

    def mean_length(self) -> int:
        """Return how long a sample is on average, after cutting."""
        return -(-int(self._lengths.sum()) // max(len(self), 1))

    def share(self, k: int, n: int) -> Iterator[Batch]:
        """Yield the batches of the k-th of n workers; without samples, one that is empty."""
        rows = self._rows(k, n)
        if not len(self):
            yield self.batch
        while len(rows):
            part: Any = rows[: self._at_once(rows[0])]
            rows = rows[len(part) :]
            if self._order is not None:
                yield self.batch.select(part).cut()
            else:
                yield self.batch.select(slice(int(part[0]), int(part[-1]) + 1))  # a view

    def in_order(self, shares: list[list[np.ndarray]]) -> np.ndarray:
        """Return the results of all workers in the order of the samples."""
        results = [result for share in shares for result in share]
        joined = results[0] if len(results) == 1 else np.concatenate(results)
        if self._order is None:
            return joined
        sorted_ = np.empty_like(joined)
        n = len(shares)
        sorted_[np.concatenate([self._rows(k, n) for k in range(n)])] = joined
        return sorted_

    def _at_once(self, longest: int) -> int:
        """Return the size of a batch that begins with this sample."""
        if self._tokens is None:
            return self._size
        return min(self._size, max(1, self._tokens // int(self._lengths[longest])))

    def _rows(self, k: int, n: int) -> np.ndarray:
        """Return the samples of a worker: neighbours, or every n-th by length."""
        if self._order is not None:
            return self._order[k::n]
        return np.arange(k * len(self) // n, (k + 1) * len(self) // n)
