"""Batches of samples of similar length, with the padding cut that nobody needs.

A batch takes the time of its longest sample, padding included. So samples of similar length go
together, and columns that are padding in all of them are left out. A layer that skips padding gives
the same numbers with less of it, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Array, Layer, Padding
from npformer.data.batch import Batch
from npformer.layers import Pooling
from npformer.mixers import WholeSequenceMixer

WINDOW = 32
"""Batches among which samples are sorted in training: enough for little padding, and few enough
that the batches of an epoch are not those of the next."""


def sees_padding(model: Layer) -> bool:
    """Return whether the amount of padding changes a model's outputs, so that it may not be cut.

    It does in a mixer that mixes padding as zeros, and if a pooling needs sequences of max_len.
    """
    return any(
        (isinstance(layer, WholeSequenceMixer) and layer.padding == "zero")
        or (isinstance(layer, Pooling) and layer.full_length)
        for _, layer in model.layers()
    )


def lengths_of(mask: Array) -> np.ndarray:
    """Return how many columns each row of a mask needs: up to its last kept token, at least 1."""
    length = mask.shape[1]
    last = length - np.asarray(mask)[:, ::-1].argmax(axis=1)
    return np.where(np.asarray(mask).any(axis=1), last, 1)


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


def cut(batch: Batch, *, per_token: bool, at_least: int = 1) -> Batch:
    """Return a batch on the host without the columns that are padding in all samples.

    `per_token` says that y has an entry for each token. So many columns are kept `at_least`.
    """
    if batch.padding is None or not len(batch):
        return batch
    mask = batch.padding.on_host()
    longest = max(int(lengths_of(mask).max()), at_least)
    if longest == mask.shape[1]:
        return batch
    y = batch.y[:, :longest] if per_token and batch.y is not None else batch.y
    types = None if batch.types is None else batch.types[:, :longest]
    weights = batch.weights
    if weights is not None and weights.ndim > 1:
        weights = weights[:, :longest]
    padding = Padding(mask[:, :longest])
    x = batch.x[:, :longest]
    return replace(batch, x=x, y=y, padding=padding, types=types, weights=weights)


class Batches:
    """Samples in batches for a prediction, the longest first.

    Parameters
    ----------
    x, mask, types : array
        All samples; mask and types may be None.
    batch_size : int
    by_length : bool
        Whether to sort samples and to cut padding, if there is a mask and both are on the host.
    """

    def __init__(
        self, x: Array, mask: Array | None, types: Array | None, batch_size: int, by_length: bool
    ) -> None:
        self.arrays = x, mask, types
        self.batch_size = batch_size
        self.lengths: np.ndarray | None = None
        self.order: np.ndarray | None = None
        if by_length and isinstance(x, np.ndarray) and isinstance(mask, np.ndarray):
            self.lengths = lengths_of(mask)
            self.order = np.argsort(-self.lengths, kind="stable")

    def mean_length(self) -> int:
        """Return how long a sample is on average, after cutting."""
        if self.lengths is None:
            return int(self.arrays[0].shape[1])
        return int(np.ceil(self.lengths.mean()))

    def share(self, k: int, n: int) -> Iterator[tuple[Array | None, ...]]:
        """Yield the batches of the k-th of n workers: x, mask, types."""
        rows = self._rows(k, n)
        for start in range(0, len(rows), self.batch_size):
            part = rows[start : start + self.batch_size]
            if self.lengths is None:
                some: Any = slice(int(part[0]), int(part[-1]) + 1)  # a view, not a copy
                longest = None
            else:
                some, longest = part, int(self.lengths[part].max())
            yield tuple(a if a is None else a[some][:, :longest] for a in self.arrays)

    def in_order(self, shares: list[list[np.ndarray]]) -> np.ndarray:
        """Return the results of all workers in the order of the samples."""
        results = [result for share in shares for result in share]
        joined = results[0] if len(results) == 1 else np.concatenate(results)
        if self.order is None:
            return joined
        sorted_ = np.empty_like(joined)
        n = len(shares)
        sorted_[np.concatenate([self._rows(k, n) for k in range(n)])] = joined
        return sorted_

    def _rows(self, k: int, n: int) -> np.ndarray:
        """Return the samples of a worker: neighbours, or every n-th by length."""
        if self.order is not None:
            return self.order[k::n]
        total = len(self.arrays[0])
        return np.arange(k * total // n, (k + 1) * total // n)
