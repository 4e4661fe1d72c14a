"""evaluate: the loss and other figures of a model on labelled data; and checks of such data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from npformer.core import checks, described, to_numpy
from npformer.core.inputs import as_given
from npformer.core.telling import saying
from npformer.data.samples import Samples
from npformer.data.stored_samples import StoredSamples
from npformer.data.user_arrays import Data, is_stored, labelled_inputs
from npformer.models.losses import Loss, Measured
from npformer.training.distributed import Communicator, as_communicator
from npformer.training.trainable import Model
from npformer.training.trainable.metrics import FIGURES, Metric, own_metric
from npformer.training.trainable.predictions import in_batches, refuse_samples


@dataclass(frozen=True)
class Evaluation:
    """The loss and other figures of a model on some data.

    Attributes
    ----------
    loss : float
        Mean over all labels, in nats, without label smoothing.
    accuracy : float
        Fraction of labels that were predicted correctly; NaN for a loss without classes.
    labels : int
        The number of labels.
    macro_f1, balanced_accuracy : float
        Means over classes of F1 and of recall, in which a rare class counts as much as a frequent
        one; NaN for a loss without classes.
    metric : float or None
        The value of a function given to ``fit(metric=...)``.
    others : mapping of str to float
        Further figures of the model: `Model.figures`.
    """

    loss: float
    accuracy: float
    labels: int
    macro_f1: float = math.nan
    balanced_accuracy: float = math.nan
    metric: float | None = None
    others: Mapping[str, float] = field(default_factory=dict)

    def value(self, metric: Metric) -> float:
        """Return the value of a metric; NaN for a metric of classes if there are none."""
        name = metric if isinstance(metric, str) else "metric"
        return float(self.others[name] if name in self.others else getattr(self, name))


def evaluate(
    model: Model,
    data: Data,
    batch_size: int = 256,
    processes: bool | str = "auto",
    loss: Loss | None = None,
    *,
    sample_weight: Any = None,
    communicator: Any = None,
) -> Evaluation:
    """Return the loss and other figures of a model on labelled data.

    `data`, `loss`, `sample_weight` and `communicator` are as in `fit`, `batch_size` and `processes`
    as in `Model.predict_probabilities`. Weights count in the loss and in all metrics.

    Raises
    ------
    ValueError
        There is no label, or the model's outputs for a sample are NaN or infinite.
    """
    with as_communicator(communicator).guard() as ranks:
        require_model(model)
        loss = model.loss_with(loss)
        samples = checked_data(model, "data", data, loss, sample_weight, ranks)
        return measure(model, samples, loss, batch_size, processes, ranks, must_be_numbers=True)


def measure(
    model: Model,
    samples: Samples,
    loss: Loss,
    batch_size: int,
    processes: bool | str,
    ranks: Communicator,
    metric: Metric = "accuracy",
    must_be_numbers: bool = False,
) -> Evaluation:
    """Evaluate a model on checked data, each rank on its part."""
    own: list[tuple[Measured, Any]] = []
    for start, some in samples.pieces(ranks.shard(len(samples))):
        outputs = in_batches(model, to_numpy, some.inputs, batch_size, processes)
        wrong = np.isnan(outputs) | (outputs == np.inf)  # -inf is a class of probability 0
        if must_be_numbers:
            refuse_samples(wrong, "outputs", start)
        targets: Any = [np.asarray(each) for each in some.targets()]
        answers = None if isinstance(metric, str) else (outputs, targets[0])
        own.append((loss.measure(outputs, *targets), answers))
    of_all = [each for of_rank in ranks.gather(own) for each in of_rank]
    found, value = reduce(add, [measured for measured, _ in of_all]), None
    if not isinstance(metric, str):
        joined = map(np.concatenate, zip(*[answers for _, answers in of_all], strict=True))
        value = own_metric(metric, loss, *joined)
    figures = {name: figure(found) for name, figure in model.figures.items()}
    by_class = {name: figures.pop(name, math.nan) for name in FIGURES}
    mean = found.total / found.divisor
    return Evaluation(mean, labels=found.n, metric=value, others=figures, **by_class)


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return the batch size of evaluations for a training whose batches fit into memory."""
    # Without a backward pass, batches may be four times as large.
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


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
    with saying(f"in {name}, "):
        if not any(is_stored(a) for each in inputs for a in (each.x, each.mask, each.types, y)):
            x, mask, types = as_given(inputs)
            batch = model.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
            samples = Samples(batch, [model.note(batch)])
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
    return samples


def require_model(model: Model) -> None:
    """Raise TypeError or ValueError for a layer that cannot be trained."""
    kind = type(model).__name__
    advice = (
        "SequenceClassifier is one, and has a loss. Derive your layer from Model "
        "(docs/extending/model.md), or write the loop yourself: forward, a loss of "
        "npformer.functional, backward, Adam.step"
    )
    if callable(getattr(model, "fit", None)):
        advice = f"A {kind} has methods of its own, such as fit"
    checks.instance("model", model, Model, advice)
    try:
        loss = model.loss
    except AttributeError as error:
        raise TypeError(str(error)) from None
    checks.instance(f"loss of {kind}", loss, Loss, "npformer.losses.MeanSquaredError() is one")
    if model.n_inputs not in (1, 2):
        raise ValueError(f"n_inputs of {kind} is {model.n_inputs!r}; expected 1 or 2")
    if model.targets_of not in (None, *range(model.n_inputs)):
        raise ValueError(
            f"targets_of of {kind} is {model.targets_of!r}, and n_inputs is {model.n_inputs}; "
            "expected None, or the number of the input whose tokens have targets, from 0"
        )
    for name, figure in model.figures.items():
        if not callable(figure):
            raise TypeError(
                f"figures[{name!r}] of {kind} is {described(figure)}; expected a function of "
                "npformer.losses.Measured"
            )
        if name in ("loss", "labels", "metric"):
            raise ValueError(
                f"figures of {kind} has {name!r}, which every evaluation has; expected another name"
            )
