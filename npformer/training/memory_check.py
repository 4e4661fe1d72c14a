"""A warning before the first step of a training that needs more memory than there is."""

from __future__ import annotations

import math
import warnings

import numpy as np

from npformer.core import Parameter
from npformer.core.support.free_memory import free_memory
from npformer.models.batch import Batch
from npformer.models.trainable import Model
from npformer.training.batches import Batches
from npformer.training.settings import Settings

GIB = 1 << 30

ARRAYS = 8
"""An upper bound of the arrays, as wide as a map's input and output, that a step has of it."""

PARTS = (2, 4, 8, 16)
"""Parts of a worker's samples that the advice tries."""


def warn_if_too_large(model: Model, batches: Batches, settings: Settings) -> None:
    """Warn if a step will probably need more memory than the machine has left.

    Nothing is said where it is not known: on a GPU, or if a layer needs numbers to run.
    """
    free = free_memory()
    if free is None or model.backend != "numpy":
        return
    batch = longest_batch(model, batches)
    if most_bytes(model, batch) < free:
        return
    if model.self_supervised:
        batch = batch.anew(0, 0)
    batch = model.upload(batch, loss=batches.task.loss)
    peak = bytes_of_step(model, batch, batches, settings, settings.samples_at_once)
    if peak is None or peak < free:
        return
    advice = advice_for(model, batch, batches, settings, free)
    warnings.warn(
        f"a training step of {len(batch)} samples with {batch.n_tokens} tokens each will take "
        f"about {peak / GIB:.3g} GiB, and this machine has {free / GIB:.3g} GiB left. {advice}. "
        "npformer.step_memory(model, x) says what the memory is for",
        stacklevel=4,
    )


def longest_batch(model: Model, batches: Batches) -> Batch:
    """Return the batch of the longest samples to train on."""
    samples, rows = batches.task.samples, batches.task.rows
    if samples.lengths is not None:
        lengths = samples.lengths[rows].sum(axis=1)
        rows = rows[np.argsort(-lengths, kind="stable")]
    batch = samples.select(np.sort(rows[: batches.batch_size]))
    return batch if batches.way == "shuffled" else batch.cut()


def most_bytes(model: Model, batch: Batch) -> int:
    """Return more bytes than a step takes, at a glance: most trainings need no closer look."""
    itemsize = np.dtype(model.dtype).itemsize
    tokens = len(batch) * batch.n_tokens
    n_numbers = 0
    for _, layer in model.layers():
        shapes = [child.shape for _, child in layer.children() if isinstance(child, Parameter)]
        n_numbers += tokens * sum(sum(shape[-2:]) for shape in shapes)
        n_numbers += 4 * sum(map(math.prod, shapes))
        n_numbers += tokens * batch.n_tokens * int(getattr(layer, "n_heads", 0))
    return ARRAYS * itemsize * n_numbers


def bytes_of_step(
    model: Model, batch: Batch, batches: Batches, settings: Settings, micro_batch: int | None
) -> int | None:
    """Return what a step takes; None if that cannot be known."""
    from npformer.training.step_memory import use_of_step  # late: few trainings need it

    try:
        loss = batches.task.loss
        return use_of_step(model, batch, loss, None, settings.workers, micro_batch).peak
    except RuntimeError:  # a layer needs numbers, and has none
        return None


def advice_for(model: Model, batch: Batch, batches: Batches, settings: Settings, free: int) -> str:
    """Return what to do: the largest micro-batch that fits, if one does."""
    largest = settings.samples_at_once or len(batch)
    others = (
        "a smaller batch_size, shorter samples (max_len), or attention that keeps no weights "
        "(EncoderConfig(memory='blocks'))"
    )
    for parts in PARTS:
        size = largest // parts
        peak = None
        if size:
            peak = bytes_of_step(model, batch, batches, settings, size)
        if peak is not None and peak < free:
            return (
                f"With micro_batch={size} the same step takes {peak / GIB:.3g} GiB; other ways "
                f"are {others}"
            )
    return f"Expected less: a small micro_batch, {others}"
