"""Checks of all samples that `fit` and `evaluate` are given."""

from __future__ import annotations

import warnings
from typing import Any

from npformer.core.support.explained_errors import add_place_to_errors
from npformer.data.samples import Data, Samples, check_labelled_inputs, is_stored
from npformer.data.stored_samples import StoredSamples
from npformer.data.weights import check_weights
from npformer.models.batch import Batch
from npformer.models.losses import Loss
from npformer.models.trainable import Model
from npformer.training.single_process import Processes, SingleProcess


def check_data(
    model: Model,
    name: str,
    data: Data,
    loss: Loss,
    sample_weight: Any = None,
    processes: Processes | None = None,
    progress: bool = False,
) -> Samples:
    """Return all samples, on the host or in files, after checking each of them.

    If they are in files, each rank checks its part; without `processes`, this one checks all.
    """
    inputs, y = check_labelled_inputs(model, name, data)
    with add_place_to_errors(f"in {name}, "):
        arrays = [
            array
            for sequences in inputs
            for array in (sequences.x, sequences.mask, sequences.types)
        ]
        if any(is_stored(array) for array in (*arrays, y)):
            processes = processes or SingleProcess()
            samples: Samples = StoredSamples(
                model, inputs, y, loss, sample_weight, processes, progress
            )
        else:
            sample_weight = check_weights(sample_weight)
            samples = Samples(model.check_samples(inputs, y, loss, sample_weight))
    check_some_labels(name, samples, loss, sample_weight)
    if type(samples) is Samples and samples.lengths is not None:  # in memory, with padding
        samples.notes = [model.note(samples.batch)]
        warn_of_empty(name, samples.batch)
    return samples


def check_some_labels(name: str, samples: Samples, loss: Loss, sample_weight: Any) -> None:
    """Raise ValueError unless some sample counts in the loss."""
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


def warn_of_empty(name: str, batch: Batch) -> None:
    """Warn of samples without a token, which an inverted mask makes of those without padding."""
    masks = [
        sequences.padding.on_host() for sequences in batch.inputs if sequences.padding is not None
    ]
    empty = sum(int((~mask.any(axis=1)).sum()) for mask in masks)
    if empty:
        warnings.warn(
            f"{empty} of {len(batch)} sequences in {name} have no token, because their mask is "
            "False throughout. If True marks padding in it, as in PyTorch, write mask = ~mask",
            stacklevel=5,
        )
