"""How a batch is shared out: which rows each worker computes, and how much they count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.core.cut_masks import Cut
from npformer.core.inputs import Sequences
from npformer.data.batch import Batch
from npformer.models.losses import Loss


class Plan(NamedTuple):
    """How a batch is shared: among workers, or call by call among the threads of one worker."""

    backend: str
    workers: int
    threads: int
    seconds: float
    """Cost of the batch on one core."""

    def in_words(self, copies: bool) -> str:
        """Return who computes the batch; `copies`: workers are copies of the process."""
        if self.threads > 1:
            return f"{self.threads} threads in a call"
        if self.workers == 1:
            return "1 worker"
        return f"{self.workers} {'processes' if copies else 'threads'}"


class Part(NamedTuple):
    """Where a batch stands in a larger one, of which other processes compute the rest."""

    first: int = 0
    """Its first row in the larger one."""
    total: float | None = None
    """How much all samples of the larger one count together; None: those of the batch itself."""
    lengths: tuple[int, ...] | None = None
    """Tokens of a sample in each input of the larger one, with padding; None: as many as in the
    batch. They may be more if `Snapshot.lengths_of_part` says so."""


WHOLE = Part()
"""A batch that is not part of a larger one."""


class Share(NamedTuple):
    """A worker's share of a training step: everything that the worker needs to know."""

    batch: Batch
    first: int
    """The batch's first row in that of the step."""
    key: Any
    """The key of the step's random numbers: see `step_key`."""
    threads: int
    parts: Sequence[tuple[slice, float]]
    """Rows of `batch` that are computed at a time, and their weight in the loss."""
    cut: Cut | None = None
    """Padding that the larger batch has and this one does not."""


def counts_of(batch: Batch, loss: Loss | None) -> np.ndarray:
    """Return how much each sample counts in the loss. It may wait for labels on a GPU."""
    if batch.counts is not None:
        return np.asarray(batch.counts)
    assert loss is not None
    return np.asarray(batch.counts_for(loss))


def share_of(
    k: int,
    plan: Plan,
    batch: Batch,
    micro_batch: int | None,
    counts: np.ndarray | None,
    key: Any,
    part: Part = WHOLE,
    masked: bool = True,
) -> Share:
    """Return the share of worker k; `counts` says how much each sample counts, None: not shared.

    Unless `masked`, a share in which no token is padding loses its mask. `part` says where the
    batch stands in a larger one.
    """
    slices = list(rows_of(k, plan.workers, len(batch), micro_batch))
    if counts is None:
        batch = batch if masked else without_full_mask(batch)
        return Share(batch, 0, key, plan.threads, [(slices[0], 1.0)])
    total = (float(counts.sum()) if part.total is None else part.total) or 1.0
    first = slices[0].start
    parts = [
        (slice(rows.start - first, rows.stop - first), float(counts[rows].sum()) / total)
        for rows in slices
    ]
    own = batch.of_rows(slice(first, slices[-1].stop))
    own = own if masked else without_full_mask(own)
    here = tuple(each.length for each in own.inputs)
    cut = None if part.lengths in (None, here) else Cut(here, part.lengths)
    return Share(own, part.first + first, key, plan.threads, parts, cut)


def without_full_mask(batch: Batch) -> Batch:
    """Return a batch without its mask if no token is padding, as is common in batches by length.

    Then layers need not look at a mask, which takes a few per cent of a short step.
    """
    if not any(_has_full_mask(each) for each in batch.inputs):
        return batch
    inputs = [replace(e, padding=None) if _has_full_mask(e) else e for e in batch.inputs]
    return replace(batch, inputs=tuple(inputs))


def _has_full_mask(each: Sequences) -> bool:
    padding = each.padding
    return padding is not None and type(padding.mask) is np.ndarray and bool(padding.mask.all())


def rows_of(k: int, n: int, n_rows: int, micro_batch: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, at most `micro_batch` at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    size = max(stop - start, 1) if micro_batch is None else micro_batch
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))
