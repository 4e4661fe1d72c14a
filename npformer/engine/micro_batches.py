"""Micro-batches: the samples of a batch that a worker computes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from npformer.core.cut_masks import Cut
from npformer.core.inputs import Sequences
from npformer.data.samples import Batch


class MicroBatch(NamedTuple):
    """Samples that are computed at a time, and what a worker needs to know about them."""

    batch: Batch
    weight: float = 1.0
    """How much their mean loss counts in that of the whole batch."""
    first: int = 0
    """The number of the first of them in the whole batch."""
    cut: Cut | None = None
    """Padding that the whole batch has and they do not."""


def micro_batches_of_worker(
    k: int, n: int, batch: Batch, most: int | None, counts: np.ndarray | None, masked: bool
) -> list[MicroBatch]:
    """Return what worker k of n computes, at most `most` samples at a time.

    `counts` says how much each sample counts in the loss; None: the batch is computed as a whole.
    Unless `masked`, samples without padding lose their mask.
    """
    if counts is None:
        return [MicroBatch(batch if masked else without_full_mask(batch))]
    shard, rows = batch.shard, list(rows_of_worker(k, n, len(batch), most))
    own = batch.select(slice(rows[0].start, rows[-1].stop))
    own = own if masked else without_full_mask(own)
    total = (float(counts.sum()) if shard is None else shard.total) or 1.0
    before, cut = 0, None
    if shard is not None:
        here, before = tuple(each.length for each in own.inputs), shard.first
        cut = None if shard.lengths in (None, here) else Cut(here, shard.lengths)
    found, at = [], rows[0].start
    for some in rows:
        if some.start < some.stop:  # else there are fewer samples than workers
            part = own.select(slice(some.start - at, some.stop - at)) if len(rows) > 1 else own
            weight = float(counts[some].sum()) / total
            found.append(MicroBatch(part, weight, before + some.start, cut))
    return found


def rows_of_worker(k: int, n: int, n_rows: int, most: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, at most `most` at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    size = max(stop - start, 1) if most is None else most
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))


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
