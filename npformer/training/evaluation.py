"""evaluate: the loss and accuracy of a model on labelled data; and checks of such data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import Array, to_numpy
from npformer.distributed import Communicator, as_communicator
from npformer.losses import Loss
from npformer.models import Batch
from npformer.training.metrics import Metric, balanced_accuracy, macro_f1, own_metric

Data = Sequence[Any]
"""(x, y), (x, y, mask) or (x, y, mask, types), host arrays; mask may be None."""


@dataclass(frozen=True)
class Evaluation:
    """The loss and accuracy of a model on some data.

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
    """

    loss: float
    accuracy: float
    labels: int
    macro_f1: float = math.nan
    balanced_accuracy: float = math.nan
    metric: float | None = None


def evaluate(
    model: SequenceClassifier,
    data: Data,
    batch_size: int = 256,
    processes: bool | str = "auto",
    loss: Loss | None = None,
    *,
    sample_weight: Any = None,
    communicator: Any = None,
) -> Evaluation:
    """Return loss and accuracy of a model on labelled data.

    `data`, `loss`, `sample_weight` and `communicator` are as in `fit`, `batch_size` and `processes`
    as in `SequenceClassifier.predict_probabilities`. Weights weigh in the loss and in all metrics.

    Raises
    ------
    ValueError
        There is no label, or the model's outputs for a sample are NaN or infinite.
    """
    with as_communicator(communicator).guard() as ranks:
        require_classifier(model)
        loss = model.loss_with(loss)
        samples = checked_data(model, "data", data, loss, sample_weight)
        return measure(model, samples, loss, batch_size, processes, True, ranks=ranks)


def measure(
    model: SequenceClassifier,
    samples: Batch,
    loss: Loss,
    batch_size: int,
    processes: bool | str,
    must_be_numbers: bool = False,
    metric: Metric = "accuracy",
    ranks: Communicator | None = None,
) -> Evaluation:
    """Evaluate a model on data that have been checked, each rank a part of them."""
    ranks = ranks or Communicator()
    own = samples.of_rows(ranks.shard(len(samples)))
    mask = None if own.padding is None else own.padding.mask
    outputs = ranks.concatenate(
        model.in_batches(to_numpy, own.x, mask, batch_size, own.types, processes=processes)
    )
    wrong = np.isnan(outputs) | (outputs == np.inf)  # -inf is a class of probability 0
    if must_be_numbers and wrong.any():
        raise ValueError(
            f"the outputs for sample {int(np.argwhere(wrong)[0, 0])} are NaN or infinite; expected "
            "numbers. Its x holds NaN or infinity, or the weights do: npformer.trace(model, x) "
            "shows where they begin"
        )
    targets: Any = [np.asarray(samples.y)]
    if samples.weights is not None:
        targets.append(np.asarray(samples.weights))
    found = loss.measure(outputs, *targets)
    n = max(found.n, 1) if found.weight is None else found.weight or 1.0
    by_class = found.by_class
    return Evaluation(
        loss=found.total / n,
        accuracy=math.nan if found.hits is None else found.hits / n,
        labels=found.n,
        macro_f1=math.nan if by_class is None else macro_f1(by_class),
        balanced_accuracy=math.nan if by_class is None else balanced_accuracy(by_class),
        metric=None if isinstance(metric, str) else own_metric(metric, loss, outputs, samples.y),
    )


def value_of(metric: Metric, found: Evaluation) -> float:
    """Return what a metric says of an evaluation; NaN if there are no classes."""
    return float(getattr(found, metric if isinstance(metric, str) else "metric"))


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return the batch size of evaluations for a training whose batches fit into memory."""
    # Without a backward pass, batches may be four times as large.
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


def checked_data(
    model: SequenceClassifier, name: str, data: Data, loss: Loss, sample_weight: Any = None
) -> Batch:
    """Return all samples as one batch on the host, after checking each of them."""
    x, y, mask, types = _parts(name, data)
    if len(x) == 0:
        raise ValueError(f"{name} has no samples; expected at least 1")
    try:
        samples = model.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
    except (TypeError, ValueError) as error:
        raise type(error)(f"in {name}, {error}") from error
    if not samples.counts_for(loss).any():
        if sample_weight is not None and loss.counts(samples.y).any():
            raise ValueError(
                f"sample_weight is 0 for every sample of {name} that has a label; expected at "
                "least one above 0"
            )
        raise ValueError(
            f"{name} has no labels; expected at least 1. Every token is padding, or has the label "
            "-1, which means that it has none"
        )
    return samples


def require_classifier(model: object) -> None:
    """Raise TypeError for other layers."""
    if not isinstance(model, SequenceClassifier):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a SequenceClassifier, which has a loss. "
            "For other layers write the loop yourself: forward, a loss of npformer.functional, "
            "backward, Adam.step"
        )


def _parts(name: str, data: Data) -> tuple[Array, Array, Array | None, Array | None]:
    """Return x, y, mask and types of some data, after checking their types and lengths."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3, 4):
        size = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        raise TypeError(
            f"{name} is a {type(data).__name__}{size}; expected (x, y) or (x, y, mask), or with "
            "token types (x, y, mask, types)"
        )
    x, y, mask, types = (*data, None, None)[:4]
    for part, array in (("x", x), ("y", y), ("mask", mask), ("types", types)):
        if isinstance(array, np.ndarray) and array.ndim == 0:
            raise ValueError(f"{part} in {name} is a single number; expected one entry per sample")
        if not isinstance(array, np.ndarray) and (part in "xy" or array is not None):
            raise TypeError(
                f"{part} in {name} is a {type(array).__name__}; expected a NumPy array. Write "
                f"numpy.asarray({part}), or npformer.to_numpy({part}) if it is on a GPU: batches "
                "are uploaded one by one"
            )
        if array is not None and len(array) != len(x):
            raise ValueError(
                f"{part} in {name} has {len(array)} samples and x has {len(x)}; expected as many"
            )
    return x, y, mask, types
