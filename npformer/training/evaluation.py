"""evaluate: the loss and accuracy of a model on labelled data; and checks of such data."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Array, to_numpy
from npformer.data.batch import Batch
from npformer.data.stored import ShardedArray, is_stored
from npformer.data.stored_samples import Samples, StoredSamples
from npformer.distributed import Communicator, as_communicator
from npformer.losses import Loss, Measured
from npformer.trainable import SequenceClassifier
from npformer.trainable.metrics import Metric, balanced_accuracy, macro_f1, own_metric

Data = Sequence[Any]
"""(x, y), (x, y, mask) or (x, y, mask, types), on the host or in files; mask may be None."""


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
        samples = checked_data(model, "data", data, loss, sample_weight, ranks)
        return measure(model, samples, loss, batch_size, processes, True, ranks=ranks)


def measure(
    model: SequenceClassifier,
    samples: Samples,
    loss: Loss,
    batch_size: int,
    processes: bool | str,
    must_be_numbers: bool = False,
    metric: Metric = "accuracy",
    ranks: Communicator | None = None,
) -> Evaluation:
    """Evaluate a model on data that have been checked, each rank a part of them."""
    ranks = ranks or Communicator()
    of_user = None if isinstance(metric, str) else metric
    own, answers = [], []
    for start, some in _parts_of(samples, ranks):
        mask = None if some.padding is None else some.padding.mask
        outputs = model.in_batches(
            to_numpy, some.x, mask, batch_size, some.types, processes=processes
        )
        wrong = np.isnan(outputs) | (outputs == np.inf)  # -inf is a class of probability 0
        if must_be_numbers and wrong.any():
            raise ValueError(
                f"the outputs for sample {start + int(np.argwhere(wrong)[0, 0])} are NaN or "
                "infinite; expected numbers. Its x holds NaN or infinity, or the weights do: "
                "npformer.trace(model, x) shows where they begin"
            )
        targets: Any = [np.asarray(each) for each in (some.y, some.weights) if each is not None]
        own.append(loss.measure(outputs, *targets))
        if of_user is not None:
            answers.append((outputs, targets[0]))
    found = _summed([each for of_rank in ranks.gather(own) for each in of_rank])
    n = max(found.n, 1) if found.weight is None else found.weight or 1.0
    value = None
    if of_user is not None:
        of_all = [each for of_rank in ranks.gather(answers) for each in of_rank]
        value = own_metric(of_user, loss, *map(np.concatenate, zip(*of_all, strict=True)))
    by_class = found.by_class
    return Evaluation(
        loss=found.total / n,
        accuracy=math.nan if found.hits is None else found.hits / n,
        labels=found.n,
        macro_f1=math.nan if by_class is None else macro_f1(by_class),
        balanced_accuracy=math.nan if by_class is None else balanced_accuracy(by_class),
        metric=value,
    )


def _parts_of(samples: Samples, ranks: Communicator) -> Iterator[tuple[int, Batch]]:
    """Yield this rank's samples: at once, or a few at a time if they are in files."""
    rows = ranks.shard(len(samples))
    size = len(samples) if isinstance(samples, Batch) else samples.at_once
    for start in range(rows.start, rows.stop, size):
        yield start, samples.of_rows(slice(start, min(start + size, rows.stop)))


def _summed(parts: list[Measured]) -> Measured:
    """Return the loss of the data of several parts."""
    by_field: Any = zip(*(vars(part).values() for part in parts), strict=True)
    summed: list[Any] = [None if each[0] is None else sum(each) for each in by_field]
    return Measured(*summed)


def value_of(metric: Metric, found: Evaluation) -> float:
    """Return what a metric says of an evaluation; NaN if there are no classes."""
    return float(getattr(found, metric if isinstance(metric, str) else "metric"))


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return the batch size of evaluations for a training whose batches fit into memory."""
    # Without a backward pass, batches may be four times as large.
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


def checked_data(
    model: SequenceClassifier,
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
    x, y, mask, types = arrays = _parts(name, data)
    if len(x) == 0:
        raise ValueError(f"{name} has no samples; expected at least 1")
    samples: Samples
    try:
        if any(map(is_stored, arrays)):
            samples = StoredSamples(model, arrays, loss, sample_weight, ranks, progress)
        else:
            samples = model.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
    except (TypeError, ValueError) as error:
        raise type(error)(f"in {name}, {error}") from error
    if not samples.counts_for(loss).any():
        if sample_weight is not None and (samples.y is None or loss.counts(samples.y).any()):
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
        known = isinstance(array, np.ndarray | ShardedArray)
        if not known and (part in "xy" or array is not None):
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
