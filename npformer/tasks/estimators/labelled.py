"""Labelled samples of a training: their weights, and the part that is held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.samples import Data
from npformer.tasks.estimators.class_names import ClassNames, check_as_many
from npformer.tasks.estimators.readers import Reader
from npformer.tasks.estimators.split import recall_rows
from npformer.training.storage.drawn import Drawn


@dataclass(frozen=True)
class LabelledSamples:
    """Samples, the number of the class of each, and its weight if there are weights."""

    samples: Sequence[Any]
    y: np.ndarray
    weights: np.ndarray | None = None

    def rows(self, rows: np.ndarray) -> LabelledSamples:
        """Return some of the samples, with their classes and weights."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledSamples([self.samples[i] for i in rows], self.y[rows], weights)


def read_labelled_samples(samples: Sequence[Any], y: np.ndarray, weights: Any) -> LabelledSamples:
    """Return samples with their classes and weights, after checking that they go together."""
    check_as_many(samples, y)
    if weights is None:
        return LabelledSamples(samples, y)
    checked = checks.weights("sample_weight", weights)
    checks.shape("sample_weight", checked, (len(y),), "One number for each sample")
    return LabelledSamples(samples, y, checked)


def add_held_out(
    train: LabelledSamples,
    validation: Any,
    reader: Reader,
    names: ClassNames,
    seed: int,
    drawn: Drawn,
) -> tuple[LabelledSamples, LabelledSamples | None]:
    """Return what is trained on, and what is validated on, if anything.

    `validation` is a share of the samples, separate samples and labels, or None.
    """
    if validation is None:
        return train, None
    if isinstance(validation, tuple | list):
        samples = reader.check_samples(validation[0], "the samples of validation")
        return train, LabelledSamples(
            samples, names.numbers(validation[1], "the labels of validation")
        )
    rows, held_out_rows = recall_rows(drawn, "validation", train.y, validation, seed)
    return train.rows(rows), train.rows(held_out_rows)


def add_weights(
    settings: Mapping[str, Any], train: LabelledSamples, names: ClassNames
) -> dict[str, Any]:
    """Return arguments of `npformer.fit` with the weights of samples, and of classes by number."""
    weighted = dict(settings)
    if isinstance(weighted.get("class_weight"), Mapping):
        weight_of_name = weighted["class_weight"]
        numbers = names.numbers(list(weight_of_name), "the keys of class_weight")
        weighted["class_weight"] = dict(zip(numbers.tolist(), weight_of_name.values(), strict=True))
    if train.weights is not None:
        weighted["sample_weight"] = train.weights
    return weighted


def split_for_calibration(
    data: Data, settings: Mapping[str, Any], share: float, seed: int, drawn: Drawn
) -> tuple[Data, Mapping[str, Any], Data]:
    """Return data to train on with the settings for it, and data to fit a temperature on."""
    x, y, mask = data
    rows, held_out_rows = recall_rows(drawn, "calibration", y, share, seed)
    train = x[rows], y[rows], mask[rows]
    held_out = x[held_out_rows], y[held_out_rows], mask[held_out_rows]
    weights = settings.get("sample_weight")
    if weights is not None:
        settings = {**settings, "sample_weight": weights[rows]}
    return train, settings, held_out
