"""Batches of a training: what is trained, and the order of an epoch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Feed, guarded_computation, step_key
from npformer.core.support.explained_errors import located_errors
from npformer.data.held_out import held_out_rows, validation_share
from npformer.data.lengths import shuffled_by_length
from npformer.data.samples import Data, Samples, is_stored, labelled_inputs
from npformer.data.stored_samples import StoredSamples
from npformer.models.batch import Batch, Shard
from npformer.models.losses import Loss
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import Metric, check_figures, checked_metric
from npformer.training.distributed import Communicator

WAYS = ("by_length", "cut", "shuffled")
"""The ways in which samples are put into batches."""


class Task(NamedTuple):
    """What is trained: the samples, the loss, and the metric that chooses the best epoch."""

    samples: Samples  # all that were given
    rows: np.ndarray  # those to train on
    part: Samples  # the same, as samples
    held_out: Samples | None  # those to validate on
    rows_held_out: list[int] | None  # the same, if they are a share of the samples
    loss: Loss
    metric: Metric


def checked_task(
    model: Model,
    data: Data,
    validation: Any,
    rng: np.random.Generator,
    ranks: Communicator,
    progress: bool,
    loss: Loss | None,
    label_smoothing: float,
    metric: Metric,
    sample_weight: Any,
    class_weight: Any,
) -> Task:
    """Check all data, so that a wrong label in the last batch does not cost an epoch."""
    given, loss = loss is not None, model.loss_with(loss, label_smoothing)
    metric = checked_metric(metric, model.figures, loss)
    samples = checked_data(model, "data", data, loss, sample_weight, ranks, progress)
    if samples.notes:
        model.remember(samples.notes)
    rows, part, held_out, of_share = np.arange(len(samples)), samples, None, None
    if validation is not None:
        check_figures(model)
        if (share := validation_share(validation)) is None:
            held_out = checked_data(model, "validation", validation, loss, None, ranks)
        else:
            counts, strata = samples.counts_for(loss), model.strata(samples.y, loss)
            rows, held = held_out_rows(strata, counts, share, *rng.spawn(1))
            part, held_out, of_share = samples.subset(rows), samples.subset(held), held.tolist()
    if class_weight is not None:
        if given:
            raise ValueError(
                "class_weight and a loss are given; expected one of the two. Pass it to the loss: "
                "SoftmaxCrossEntropy(class_weight=[1.0, 2.0])"
            )
        loss = model.loss_with_class_weights(loss, class_weight, part)
    return Task(samples, rows, part, held_out, of_share, loss, metric)


def checked_data(
    model: Model,
    name: str,
    data: Data,
    loss: Loss,
    sample_weight: Any = None,
    ranks: Communicator | None = None,
    progress: bool = False,
) -> Samples:
    """Return all samples, on the host or in files, after checking each of them.

    If they are in files, each rank checks its part.
    """
    inputs, y = labelled_inputs(model, name, data)
    with located_errors(f"in {name}, "):
        if not any(is_stored(a) for each in inputs for a in (each.x, each.mask, each.types, y)):
            samples = Samples(model.check_samples(inputs, y, loss, sample_weight))
        else:
            samples = StoredSamples(model, inputs, y, loss, sample_weight, ranks, progress)
    if not samples.counts_for(loss).any():
        if sample_weight is not None and (samples.y is None or loss.counts(samples.y).any()):
            raise ValueError(
                f"sample_weight is 0 for every sample of {name} that has a label; expected at "
                "least one above 0"
            )
        raise ValueError(
            f"{name} has no labels; expected at least 1. Every token is padding, or has the label "
            "-1, which means no label"
        )
    if type(samples) is Samples and samples.lengths is not None:  # in memory, with padding
        samples.notes = [model.note(samples.batch)]
        warn_of_empty(name, samples.batch)
    return samples


def warn_of_empty(name: str, batch: Batch) -> None:
    """Warn of samples without a token, which an inverted mask makes of those without padding."""
    masks = [each.padding.on_host() for each in batch.inputs if each.padding is not None]
    empty = sum(int((~mask.any(axis=1)).sum()) for mask in masks)
    if empty:
        warnings.warn(
            f"{empty} of {len(batch)} sequences in {name} have no token, because their mask is "
            "False throughout. If True marks padding in it, as in PyTorch, write mask = ~mask",
            stacklevel=5,
        )


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return the batch size of evaluations for a training whose batches fit into memory."""
    # Without a backward pass, batches may be four times as large.
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


def way_of_batches(model: Model, samples: Samples, batches: str) -> str:
    """Return the way in which samples are put into batches, one of `WAYS`."""
    if batches == "shuffled" or (lengths := samples.lengths) is None:
        return "shuffled"
    if not model.skips_padding():
        if batches == "auto":
            return "shuffled"
        raise ValueError(
            f"batches is {batches!r} and the amount of padding changes what this model computes "
            "(padding='zero' or pooling='flatten'); expected 'shuffled' or 'auto'"
        )
    if (lengths == samples.padded_lengths).all():
        return "shuffled"
    if batches == "auto":  # batches of a single length pull a decoder back and forth
        return "by_length" if model.n_inputs == 1 else "cut"
    return batches


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
        if self.way == "by_length" and (lengths := self.task.samples.lengths) is not None:
            of_rows = lengths[self.task.rows].sum(axis=1)
            order = shuffled_by_length(of_rows, self.batch_size, self.shuffle)
        else:
            order = self.shuffle.permutation(len(self.task.rows))
        self.order = self.task.rows[order]

    def pick(self, k: int) -> tuple[np.ndarray, Batch]:
        """Return batch k, counted from 0: the rows of its samples, and these, cut and uploaded."""
        rows, at_least, shard = self._rows(k)
        with guarded_computation(self.model.backend, len(rows)):
            batch = self.task.samples.select(rows)
            if self.model.self_supervised:
                first = 0 if shard is None else shard.first
                batch = batch.anew(step_key(self.shuffle), first)
                shard = self._counted(shard, batch)
            if k + 1 < len(self):
                self.task.samples.expect(lambda: self._rows(k + 1)[0])
            if self.way != "shuffled":
                batch = batch.cut(at_least)
            batch = self.model.upload(batch, self.feed, loss=self.task.loss)
        return rows, batch if shard is None else replace(batch, shard=shard)

    def _counted(self, shard: Shard | None, batch: Batch) -> Shard | None:
        """Return a shard's place once targets have been drawn, and count otherwise than before."""
        return shard

    def _rows(self, k: int) -> tuple[np.ndarray, Any, Shard | None]:
        """Return the rows of batch k; to what length to cut them; and their place if a shard."""
        return self.order[k * self.batch_size : (k + 1) * self.batch_size], 1, None
