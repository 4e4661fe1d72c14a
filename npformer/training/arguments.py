"""Checks of `fit`'s arguments, and what they are made into."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Layer, checks, use_precision
from npformer.data.held_out import held_out_rows, validation_share
from npformer.data.samples import Samples
from npformer.data.user_arrays import Data
from npformer.engine.updates import device_generator
from npformer.models.losses import Loss
from npformer.optim import Adam
from npformer.training.distributed import Communicator
from npformer.training.evaluation import Evaluation, checked_data, measure
from npformer.training.trainable import Model
from npformer.training.trainable.metrics import Metric, checked_metric

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
    *,
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
    model.remember(samples.notes)
    rows, part, held_out, of_share = np.arange(len(samples)), samples, None, None
    if (share := validation_share(validation)) is not None:
        counts, strata = samples.counts_for(loss), model.strata(samples.y, loss)
        rows, held = held_out_rows(strata, counts, share, *rng.spawn(1))
        part, held_out, of_share = samples.subset(rows), samples.subset(held), held.tolist()
    elif validation is not None:
        held_out = checked_data(model, "validation", validation, loss, None, ranks)
    if class_weight is not None:
        if given:
            raise ValueError(
                "class_weight and a loss are given; expected one of the two. Pass it to the loss: "
                "SoftmaxCrossEntropy(class_weight=[1.0, 2.0])"
            )
        loss = model.loss_with_class_weights(loss, class_weight, part)
    return Task(samples, rows, part, held_out, of_share, loss, metric)


@np.errstate(over="ignore", invalid="ignore")  # the loss shows it
def evaluate_task(
    model: Model, task: Task, batch_size: int, processes: bool | str, ranks: Communicator
) -> Evaluation | None:
    """Evaluate a model on the samples to validate on; None if there are none."""
    if task.held_out is None:
        return None
    return measure(model, task.held_out, task.loss, batch_size, processes, ranks, task.metric)


def check_optional(clip_norm: float | None, numbers: Mapping[str, int | None]) -> None:
    """Check arguments that may be None: clip_norm, and whole numbers of at least 1."""
    if clip_norm is not None:
        checks.number("clip_norm", clip_norm, above=0.0)
    for name, value in numbers.items():
        if value is not None:
            checks.positive(name, value)


def check_choices(shard_moments: bool, on_interrupt: str, masks: str, batches: str) -> None:
    """Check arguments that are one of a few words, or a flag."""
    checks.flag("shard_moments", shard_moments)
    checks.choice("on_interrupt", on_interrupt, ("raise", "return"))
    checks.choice("masks", masks, ("host", "device"))
    checks.choice("batches", batches, ("auto", *WAYS))


def check_patience(patience: int | None, validation: Any) -> None:
    """Raise ValueError for patience without validation data."""
    if patience is not None and validation is None:
        raise ValueError(
            f"patience is {patience} and there is no validation data; expected some, because "
            "it decides which epoch is better. Pass validation=(x, y), or patience=None"
        )


def optimizer_for(model: Model, optimizer: Adam | None, **settings: Any) -> Adam:
    """Return the given optimizer, or a new one with those of the settings that are not None."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not model.parameters():
        raise ValueError(
            "every parameter of the model is frozen, so there is nothing to train; expected at "
            "least one that is not: model.unfreeze('classify.*')"
        )
    if optimizer is None:
        return Adam(model.parameters(), **given)
    checks.instance("optimizer", optimizer, Adam, "Write Adam(model.parameters())")
    if given:
        both = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(
            f"optimizer is given together with {both}; expected only one of the two, because an "
            "optimizer has its own settings. Pass them to Adam(...)"
        )
    check_trains(optimizer, model)
    return optimizer


def check_trains(optimizer: Adam, model: Layer) -> None:
    """Raise ValueError unless an optimizer updates the model's own arrays."""
    if not trains(optimizer, model):
        raise ValueError(
            "optimizer's parameters are not this model's; expected exactly the model's own arrays. "
            "After loading, copying or moving a model make a new one: Adam(model.parameters())"
        )


def trains(optimizer: Adam, model: Layer) -> bool:
    """Return whether an optimizer updates exactly the model's own arrays, not copies of them."""
    theirs, ours = optimizer.parameters, model.parameters()
    return list(theirs) == list(ours) and all(theirs[name] is ours[name] for name in ours)


def dropout_generator(model: Model, masks: str, rng: np.random.Generator) -> Any:
    """Return the generator of dropout's masks: one on the GPU if `masks` is "device".

    It is a child of `rng`, so that the order of the samples does not depend on dropout.
    """
    (own,) = rng.spawn(1)
    if masks == "device" and model.backend != "numpy":
        return device_generator(model.backend, int(own.integers(1 << 63))) or own
    return own


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


def precision_of(model: Model, precision: str | None) -> AbstractContextManager[Any]:
    """Return a context in which matrix products have a precision; None changes nothing."""
    if precision is None:
        return nullcontext()
    if precision == "tf32" and model.dtype != "float32":
        raise ValueError(
            f"precision is 'tf32' and the model's dtype is {model.dtype}; expected float32, whose "
            "products TF32 rounds. Build the model with dtype='float32', or leave precision out"
        )
    return use_precision(precision, model.backend)
