"""evaluate: the loss and other figures of a model on labelled data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from npformer.data.samples import Data, Samples
from npformer.models.losses import Loss, Measured
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import FIGURES, Metric, check_figures, own_metric
from npformer.models.trainable.predictions import refuse_samples
from npformer.training.arguments import check_model
from npformer.training.batches import checked_data
from npformer.training.distributed import Communicator, as_communicator


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
    loss: Loss | None = None,
    *,
    sample_weight: Any = None,
    communicator: Any = None,
) -> Evaluation:
    """Return the loss and other figures of a model on labelled data.

    `data`, `loss`, `sample_weight` and `communicator` are as in `fit`, `batch_size` as in
    `Model.predict_probabilities`. Weights count in the loss and in all metrics.

    Raises
    ------
    ValueError
        There is no label, or the model's outputs for a sample are NaN or infinite.
    """
    with as_communicator(communicator).guard() as ranks:
        check_model("model", model)
        check_figures(model)
        loss = model.loss_with(loss)
        samples = checked_data(model, "data", data, loss, sample_weight, ranks)
        return measure(model, samples, loss, batch_size, ranks, must_be_numbers=True)


def measure(
    model: Model,
    samples: Samples,
    loss: Loss,
    batch_size: int,
    ranks: Communicator,
    metric: Metric = "accuracy",
    must_be_numbers: bool = False,
) -> Evaluation:
    """Evaluate a model on checked data, each rank on its part."""
    own: list[tuple[Measured, Any]] = []
    for start, some in samples.pieces(ranks.shard(len(samples))):
        for outputs, targets, numbers in model.answers(some, batch_size):
            wrong = np.isnan(outputs) | (outputs == np.inf)  # -inf is a class of probability 0
            if must_be_numbers:
                refuse_samples(wrong, "outputs", start + numbers)
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
