"""Batches of a training: the order of an epoch, and which rows of each batch are this rank's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Feed, explained_memory_error
from npformer.data.batch import Batch
from npformer.data.lengths import shuffled_by_length
from npformer.engine.batch_shares import WHOLE, Part
from npformer.engine.snapshot import Snapshot
from npformer.training.arguments import Task
from npformer.training.distributed import Communicator
from npformer.training.distributed.parts import parts_by_tokens
from npformer.training.trainable import Model


class Picked(NamedTuple):
    """The part of a batch that this rank computes."""

    rows: np.ndarray  # the numbers of its samples
    batch: Batch  # on the model's backend
    part: Part  # where it stands in the batch of all ranks
    snapshot: Snapshot  # of the model


@dataclass
class Batches:
    """The batches of a training; `task` has the samples, the rows to train on, and the loss.

    Each rank computes a part of each batch.
    """

    task: Task
    batch_size: int
    way: str  # how samples are put together, one of `WAYS`
    shuffle: np.random.Generator  # draws the order of each epoch
    ranks: Communicator
    order: np.ndarray | None = None  # of the rows in the epoch; None between epochs

    def __post_init__(self) -> None:
        several, task = self.ranks.size > 1, self.task
        self._counts = task.samples.counts_for(task.loss) if several else None

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        return -(-len(self.task.rows) // self.batch_size)

    def begin(self) -> None:
        """Draw the order of an epoch."""
        if self.way == "by_length" and (lengths := self.task.samples.lengths) is not None:
            of_rows = lengths[self.task.rows].sum(axis=1)
            order = shuffled_by_length(of_rows, self.batch_size, self.shuffle)
        else:
            order = self.shuffle.permutation(len(self.task.rows))
        self.order = self.task.rows[order]

    def pick(self, k: int, model: Model, snapshot: Snapshot, feed: Feed | None) -> Picked:
        """Return this rank's part of batch k, counted from 0: read, cut and uploaded."""
        rows, part, at_least = self._own(k, snapshot)
        backend = snapshot.backend  # looked up once: it takes time
        with explained_memory_error(backend, len(rows)):
            batch = self.task.samples.of_rows(rows)
            if k + 1 < len(self):
                self.task.samples.expect(lambda: self._own(k + 1, snapshot)[0])
            if self.way != "shuffled":
                batch = batch.cut(at_least)
            batch = model.upload(batch, backend, feed, loss=self.task.loss)
        return Picked(rows, batch, part, snapshot)

    def _own(self, k: int, snapshot: Snapshot) -> tuple[np.ndarray, Part, Any]:
        """Return this rank's rows of batch k, their place in it, and to what length to cut them."""
        assert self.order is not None, "an epoch has begun"
        rows = self.order[k * self.batch_size : (k + 1) * self.batch_size]
        if self._counts is None:
            return rows, WHOLE, 1
        own: slice = self.ranks.shard(len(rows))
        whole, at_least = self.task.samples.padded_lengths, np.ones(1, dtype=int)
        if self.way != "shuffled" and self.task.samples.lengths is not None:
            lengths = self.task.samples.lengths[rows]
            whole = tuple(lengths.max(axis=0).tolist())
            if snapshot.cuts_parts:
                own = parts_by_tokens(lengths.sum(axis=1), self.ranks.size)[self.ranks.rank]
            longest = lengths[own].max(axis=0, initial=1).tolist()
            at_least = np.array(snapshot.lengths_of_part(longest, whole))
        return rows[own], Part(own.start, float(self._counts[rows].sum()), whole), at_least
