"""What a model makes of labelled data: predictions, the loss of each sample, and mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import to_numpy
from npformer.core.inputs import user_arrays
from npformer.models.batch import Batch
from npformer.models.losses import Classification
from npformer.models.trainable import SequenceClassifier
from npformer.models.trainable.predictions import predict_in_batches
from npformer.tasks.reports.names import Glossary
from npformer.training.inspection.trace import Trace, trace


@dataclass(frozen=True)
class Answers:
    """A model's answers for all samples, on the host.

    Attributes
    ----------
    name : str
    model : SequenceClassifier
    samples : Batch
        Padding has no label.
    predicted, probability : array, shape (samples,) or (samples, length); or None
        The most probable class, -1 where the model's outputs are not finite, and its probability.
        None for a loss without classes.
    losses : array, shape (samples,)
        In nats, the mean over a sample's labels; NaN for a sample without labels.
    loss, accuracy : float
        The means over all labels; accuracy is NaN for a loss without classes.
    trace : Trace
        What it computed for the chosen samples.
    called : Glossary
        Names of tokens, classes and samples.
    """

    name: str
    model: SequenceClassifier
    samples: Batch
    predicted: np.ndarray | None
    probability: np.ndarray | None
    losses: np.ndarray
    loss: float
    accuracy: float
    trace: Trace
    called: Glossary

    def token_mask(self, i: int) -> np.ndarray:
        """Return which tokens of a sample are no padding."""
        (inputs,) = self.samples.inputs
        n, padding = inputs.x.shape[1], inputs.padding
        return np.ones(n, dtype=bool) if padding is None else np.asarray(padding.on_host()[i])

    def wrong(self) -> np.ndarray:
        """Return which labels were predicted wrongly; tokens without a label never are."""
        y = np.asarray(self.samples.y)
        if self.predicted is None:
            return np.zeros(len(y), dtype=bool)
        return np.asarray((y >= 0) & (self.predicted != y))

    def worst(self, n: int) -> list[int]:
        """Return the wrongly predicted samples with the largest losses; without classes, any."""
        losses = np.where(np.isnan(self.losses), np.inf, self.losses)
        counted = np.asarray(self.model.loss.counts(np.asarray(self.samples.y))) > 0
        if self.predicted is not None:
            counted &= self.wrong().reshape(len(losses), -1).any(axis=1)
        order = np.argsort(-losses, kind="stable")
        return [int(i) for i in order if counted[i]][:n]

    def confusions(self) -> list[tuple[int, int, int]]:
        """Return (label, predicted, how often), the most frequent first."""
        if self.predicted is None:
            return []
        y = np.asarray(self.samples.y)
        counted = y >= 0
        pairs = np.stack([y[counted], self.predicted[counted]])
        distinct, counts = np.unique(pairs, axis=1, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(int(distinct[0, i]), int(distinct[1, i]), int(counts[i])) for i in order]


def judge(
    name: str, model: Any, samples: Batch, batch_size: int, chosen: list[int], called: Glossary
) -> Answers:
    """Run a model on all samples, which have been checked, and trace it on the chosen ones."""
    traced_samples = samples.select(chosen)
    x, mask, _ = user_arrays(traced_samples.inputs)
    traced = trace(model, x, mask, labels=traced_samples.y)
    outputs = predict_in_batches(model, to_numpy, samples.inputs, batch_size)
    y = np.asarray(samples.y)
    predicted = probability = None
    with np.errstate(all="ignore"):
        measures = [model.loss.measure(outputs[i : i + 1], y[i : i + 1]) for i in range(len(y))]
        if isinstance(model.loss, Classification):
            p = model.loss.probabilities(outputs)
            finite = np.isfinite(p).all(axis=-1)
            predicted = np.where(finite, np.nan_to_num(p).argmax(axis=-1), -1)
            probability = np.where(finite, p.max(axis=-1), np.nan)
    n = max(sum(measure.n for measure in measures), 1)
    accuracy = math.nan
    if predicted is not None:
        accuracy = sum(measure.hits or 0 for measure in measures) / n
    return Answers(
        name=name,
        model=model,
        samples=samples,
        predicted=predicted,
        probability=probability,
        losses=np.array([m.total / m.n if m.n else math.nan for m in measures]),
        loss=sum(measure.total for measure in measures) / n,
        accuracy=accuracy,
        trace=traced,
        called=called,
    )
