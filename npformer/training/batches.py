"""Batches of a training: what is trained, and the order of an epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Feed, guard_computation, step_key
from npformer.data.held_out import split_rows, validation_share
from npformer.data.lengths import shuffle_by_length
from npformer.data.samples import Data, Samples
from npformer.models.batch import Batch, Shard
from npformer.models.losses import Loss
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import Metric, check_figures, check_metric
from npformer.training.data_checks import check_data
from npformer.training.settings import Settings
from npformer.training.single_process import Processes


class Task(NamedTuple):
    """What is trained: the samples, the loss, and the metric that chooses the best epoch."""

    samples: Samples  # all that were given
    rows: np.ndarray  # those to train on
    part: Samples  # the same, as samples
    held_out: Samples | None  # those to validate on
    rows_held_out: list[int] | None  # the same, if they are a share of the samples
    loss: Loss
    metric: Metric


def check_task(
    model: Model,
    data: Data,
    settings: Settings,
    generator: np.random.Generator,
    processes: Processes,
) -> Task:
    """Check all data, so that a wrong label in the last batch does not cost an epoch.

    The generator draws which samples are held out, if `validation` is a share of them.
    """
    loss = model.loss_with(settings.loss, settings.label_smoothing)
    metric = check_metric(settings.metric, model.figures, loss)
    samples = check_data(
        model, "data", data, loss, settings.sample_weight, processes, settings.progress
    )
    if samples.notes:
        model.remember(samples.notes)
    rows = np.arange(len(samples))
    training_samples = samples
    held_out = None
    rows_held_out = None
    validation: Any = settings.validation
    if validation is not None:
        check_figures(model)
        share = validation_share(validation)
        if share is None:
            held_out = check_data(model, "validation", validation, loss, processes=processes)
        else:
            counts = samples.counts_for(loss)
            strata = model.strata(samples.y, loss)
            (drawing,) = generator.spawn(1)
            rows, rows_of_share = split_rows(strata, counts, share, drawing)
            training_samples = samples.subset(rows)
            held_out = samples.subset(rows_of_share)
            rows_held_out = rows_of_share.tolist()
    if settings.class_weight is not None:
        if settings.loss is not None:
            raise ValueError(
                "class_weight and a loss are given; expected one of the two. Pass it to the loss: "
                "SoftmaxCrossEntropy(class_weight=[1.0, 2.0])"
            )
        loss = model.loss_with_class_weights(loss, settings.class_weight, training_samples)
    return Task(
        samples=samples,
        rows=rows,
        part=training_samples,
        held_out=held_out,
        rows_held_out=rows_held_out,
        loss=loss,
        metric=metric,
    )


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return the batch size of evaluations for a training whose batches fit into memory."""
    # Without a backward pass, batches may be four times as large.
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


def choose_batching(model: Model, samples: Samples, batches: str) -> str:
    """Return the way in which samples are put into batches, one of `WAYS`."""
    lengths = samples.lengths
    if batches == "shuffled" or lengths is None:
        return "shuffled"
    if not model.skips_padding():
        if batches == "auto":
            return "shuffled"
        raise ValueError(
            f"batches is {batches!r} and the amount of padding changes what this model computes "
            "(padding='zero' or pooling='flatten'); expected 'shuffled' or 'auto'"
        )
    if (lengths == samples.lengths_with_padding).all():
        return "shuffled"
    if batches != "auto":
        return batches
    # Batches of a single length pull a decoder back and forth.
    return "by_length" if model.n_inputs == 1 else "cut"


@dataclass
class Batches:
    """The batches of a training; `task` has the samples, the rows to train on, and the loss."""

    model: Model
    task: Task
    batch_size: int
    way: str  # how samples are put together, one of `WAYS`
    shuffle: np.random.Generator  # draws the order of each epoch
    order: Any = None  # of the rows in the epoch; None between epochs
    feed: Feed | None = None  # uploads batches while a device computes

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        return -(-len(self.task.rows) // self.batch_size)

    def begin(self) -> None:
        """Draw the order of an epoch."""
        lengths = self.task.samples.lengths
        if self.way == "by_length" and lengths is not None:
            lengths_of_rows = lengths[self.task.rows].sum(axis=1)
            order = shuffle_by_length(lengths_of_rows, self.batch_size, self.shuffle)
        else:
            order = self.shuffle.permutation(len(self.task.rows))
        self.order = self.task.rows[order]

    def pick(self, k: int) -> tuple[np.ndarray, Batch]:
        """Return batch k, counted from 0: the rows of its samples, and these, cut and uploaded."""
        rows, at_least, shard = self._rows(k)
        samples = self.task.samples
        with guard_computation(self.model.backend, len(rows)):
            batch = samples.select(rows)
            if self.model.self_supervised:
                first = 0 if shard is None else shard.first
                batch = batch.anew(step_key(self.shuffle), first)
                shard = self._count_labels(shard, batch)
            if k + 1 < len(self):
                samples.expect(lambda: self._rows(k + 1)[0])
            if self.way != "shuffled":
                batch = batch.cut(at_least)
            batch = replace(batch, counts=batch.counts_for(self.task.loss))
            batch = self.model.upload(batch, self.feed, loss=self.task.loss)
        if shard is not None:
            batch = replace(batch, shard=shard)
        return rows, batch

    def _count_labels(self, shard: Shard | None, batch: Batch) -> Shard | None:
        """Return a shard's place once targets have been drawn, and count otherwise than before."""
        return shard

    def _rows(self, k: int) -> tuple[np.ndarray, Any, Shard | None]:
        """Return the rows of batch k; to what length to cut them; and their place if a shard."""
        first = k * self.batch_size
        return self.order[first : first + self.batch_size], 1, None
