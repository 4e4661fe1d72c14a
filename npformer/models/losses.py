"""Losses of a model's outputs, as objects.

To define another loss, derive from `Loss`: docs/extending/loss.md.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from npformer import functional as F
from npformer.core import Array, Registry, array_module, backend_of, checks, to_numpy
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.core.support.missing_names import lead_to_names
from npformer.core.support.weights import moderate
from npformer.functional.embedding import check_ids

__all__ = [
    "LOSSES",
    "BinaryCrossEntropy",
    "Classification",
    "Loss",
    "MeanSquaredError",
    "Measured",
    "SoftmaxCrossEntropy",
]

lead_to_names(__name__)

MOST_CONFUSED = 100
"""Classes of which it is counted how often each is taken for each other: not words."""


@dataclass(frozen=True)
class Measured:
    """The loss of some data."""

    total: float  # the sum over all targets, each times its weight
    hits: float | None  # how many classes were predicted right; None if there are no classes
    n: int  # how many targets
    weight: float | None = None  # of all targets; None: n, because each weighs 1
    by_class: np.ndarray | None = None  # rows: right, labels, predictions; weight in each class
    confusion: np.ndarray | None = None  # weight of class i, the row, predicted as class j

    @property
    def divisor(self) -> float:
        """What sums are divided by: the weight of all targets, or 1 if that is 0."""
        if self.weight is None:
            return max(self.n, 1)
        return self.weight or 1.0

    def __add__(self, other: Self) -> Self:
        """Return the loss of the data of both."""
        sums: dict[str, Any] = {}
        for name, value in vars(self).items():
            sums[name] = None if value is None else value + getattr(other, name)
        return type(self)(**sums)


@drop_class_from_names
class Loss(ABC):
    """The mean loss of a batch, and its gradient with respect to the model's outputs."""

    @abstractmethod
    def forward(self, outputs: Array, y: Array) -> tuple[Array, Any]:
        """Return the mean loss of a batch, an array with no axes, and what `backward` needs.

        Parameters
        ----------
        outputs : array, shape (batch, n_outputs), or (batch, length, n_outputs) without pooling
        y : array
            Targets, checked and on the backend of the outputs.
        weights : array, shape (batch,), or (batch, length) without pooling
            Weights of the targets in the mean. A loss that supports weights takes this argument.
        """

    @abstractmethod
    def backward(self, dloss: float, cache: Any) -> Array:
        """Return the gradient of ``dloss * loss`` with respect to the outputs.

        `dloss` is 1, or if these samples are part of a larger batch, their fraction of it.
        """

    def n_outputs(self, n_classes: int) -> int:
        """Return how many outputs a model needs for each answer."""
        return n_classes

    def answer_shape(self, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the outputs for one answer."""
        return (self.n_outputs(n_classes),)

    def check(self, y: Array, answers: tuple[int, ...], n_classes: int) -> None:
        """Check the targets; on a GPU, their values are not checked.

        `answers` is (batch,), or (batch, length) without pooling.
        """
        backend_of(y=y)
        if y.ndim == 0 or len(y) != answers[0]:
            raise ValueError(
                f"y has shape {tuple(y.shape)}; expected {answers[0]} targets, one for each sample"
            )

    def without_padding(self, y: Array, mask: Array) -> Array:
        """Return the targets of tokens, changed so that padding does not count.

        Raises ValueError if this loss counts every token.
        """
        raise ValueError(
            f"{type(self).__name__} counts the targets of all tokens, and there is a padding mask; "
            "expected none. Leave it out, have one target for each sample (pooling), or give the "
            "loss a `without_padding`"
        )

    @property
    def takes_weights(self) -> bool:
        """Whether `forward` takes the weights of targets."""
        return "weights" in inspect.signature(self.forward).parameters

    def counts(self, y: Array, weights: Array | None = None) -> np.ndarray:
        """Return the weight of each sample: the number of its targets, or the sum of `weights`."""
        if weights is None:
            return np.ones(len(y), dtype="int64")
        return _sample_weights(weights)

    def measure(
        self, outputs: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
    ) -> Measured:
        """Return the loss of a whole data set, given as NumPy arrays."""
        if weights is None:
            mean = float(self.forward(outputs, y)[0])  # first, because it checks y
            n = int(self.counts(y).sum())
            return Measured(mean * n, None, n)
        n = int(self.counts(y).sum())
        weight = float(self.counts(y, weights).sum())
        if weight == 0.0:  # the mean would be NaN
            return Measured(0.0, None, n, weight)
        loss, _ = self.forward(outputs, y, weights)  # type: ignore[call-arg]
        return Measured(float(loss) * weight, None, n, weight)

    def probabilities(self, outputs: Array) -> np.ndarray:
        """Return the probability of each class, (..., n_classes), on the host.

        Raises TypeError if this loss has no classes.
        """
        raise TypeError(
            f"{type(self).__name__} has no classes; expected a loss of classes, such as "
            "SoftmaxCrossEntropy. The model's own outputs are model(x), and those that "
            "predict_to_file(..., kind='outputs') writes"
        )


@drop_class_from_names
class Classification(Loss):
    """A loss of classes: labels are whole numbers from 0 to n_classes - 1.

    Parameters
    ----------
    label_smoothing, class_weight : float, and sequence of float, optional
        See `functional.softmax_cross_entropy`. `measure` leaves both out.
    """

    @refuse_unknown_arguments
    def __init__(
        self, label_smoothing: float = 0.0, class_weight: Sequence[float] | None = None
    ) -> None:
        self.label_smoothing = checks.rate("label_smoothing", label_smoothing)
        self.class_weight: tuple[float, ...] | None = None
        if class_weight is not None:
            self.class_weight = tuple(
                moderate(checks.weights("class_weight", class_weight)).tolist()
            )

    def class_weights(self, like: Array) -> Array | None:
        """Return `class_weight` as an array of the dtype and backend of another; None if unset."""
        if self.class_weight is None:
            return None
        return array_module(like).asarray(self.class_weight, dtype=like.dtype)

    @abstractmethod
    def log_probabilities(self, outputs: Array) -> np.ndarray:
        """Return the log-probability of each class, in float64 on the host.

        It is finite even where the probability is too small for the model's dtype.
        """

    def check(self, y: Array, answers: tuple[int, ...], n_classes: int) -> None:
        if getattr(y, "shape", None) != answers:
            self._refuse_shape(y, answers, n_classes)
        least = F.NO_LABEL if len(answers) > 1 else 0
        check_ids("y", y, n_classes, f"n_classes is {n_classes}", least)
        if self.class_weight is not None and len(self.class_weight) != n_classes:
            raise ValueError(
                f"class_weight has {len(self.class_weight)} numbers and there are {n_classes} "
                "classes; expected one for each class, in the order of the labels"
            )

    def _refuse_shape(self, y: Array, answers: tuple[int, ...], n_classes: int) -> None:
        """Raise ValueError for labels whose shape is not that of the answers."""
        backend_of(y=y)
        advice = "One label for each sequence (each token without pooling)"
        if y.ndim == len(answers) + 1 and y.shape[-1] == 1:
            advice += ": y[..., 0]"
        elif y.ndim == len(answers) + 1 and y.shape[-1] == n_classes:
            advice += ": y.argmax(axis=-1) if this is one-hot"
        checks.shape("y", y, answers, advice)

    def without_padding(self, y: Array, mask: Array) -> Array:
        if y.dtype.kind not in "iu":  # `check` raises the error
            return y
        return array_module(y).where(mask, y.astype("int64"), F.NO_LABEL)

    def counts(self, y: Array, weights: Array | None = None) -> np.ndarray:
        if weights is None and self.class_weight is None and y.ndim == 1:
            return np.ones(len(y), dtype="int64")  # without a look at y, which may be on a GPU
        has_label = to_numpy(y != F.NO_LABEL)
        target_weights = has_label
        if weights is not None:
            target_weights = np.where(has_label, to_numpy(weights), 0.0)
        if self.class_weight is not None:
            labels = np.where(has_label, to_numpy(y), 0)
            target_weights = target_weights * np.asarray(self.class_weight)[labels]
        return _sample_weights(target_weights)

    def measure(
        self, outputs: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
    ) -> Measured:
        log_p = self.log_probabilities(outputs)  # [..., n_classes]
        self.check(y, log_p.shape[:-1], log_p.shape[-1])
        n_classes = log_p.shape[-1]
        has_label = y != F.NO_LABEL
        labels = np.where(has_label, y, 0)
        log_p_of_label = np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
        predictions = log_p.argmax(axis=-1)
        is_hit = (predictions == y) & has_label & ~np.isnan(log_p_of_label)
        if weights is None:
            weights = np.ones(y.shape)
        weights = weights.astype("float64")
        by_class = [
            np.bincount(y[is_hit], weights[is_hit], n_classes),
            np.bincount(y[has_label], weights[has_label], n_classes),
            np.bincount(predictions[has_label], weights[has_label], n_classes),
        ]
        matrix = _confusion(y[has_label], predictions[has_label], weights[has_label], n_classes)
        counts = has_label & (weights > 0.0)
        total = 0.0 - (weights[counts] * log_p_of_label[counts]).sum()
        return Measured(
            total=float(total),
            hits=float(weights[is_hit].sum()),
            n=int(has_label.sum()),
            weight=float(weights[counts].sum()),
            by_class=np.stack(by_class),
            confusion=matrix,
        )


class SoftmaxCrossEntropy(Classification):
    """One logit per class: see `functional.softmax_cross_entropy`."""

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        classes = None if self.class_weight is None else self.class_weights(outputs)
        return F.softmax_cross_entropy(outputs, y, self.label_smoothing, weights, classes)

    def backward(self, dloss: float, cache: Any) -> Array:
        return F.softmax_cross_entropy_backward(dloss, cache)

    def probabilities(self, outputs: Array) -> np.ndarray:
        _check_logits(outputs)
        return to_numpy(F.softmax(outputs)[0])

    def log_probabilities(self, outputs: Array) -> np.ndarray:
        _check_logits(outputs)
        z = to_numpy(outputs).astype("float64")
        shifted = z - z.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


class BinaryCrossEntropy(Classification):
    """Two classes, one logit for class 1: `functional.binary_cross_entropy_with_logits`."""

    def n_outputs(self, n_classes: int) -> int:
        return 1

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        checks.floating(outputs=outputs)
        checks.shape("outputs", outputs, ("batch", 1), "One logit for each sequence")
        self.check(y, outputs.shape[:1], n_classes=2)
        targets = y.reshape(outputs.shape).astype(outputs.dtype)
        targets = targets * (1.0 - self.label_smoothing) + 0.5 * self.label_smoothing
        weights = None if weights is None else weights.reshape(outputs.shape)
        classes = self.class_weights(outputs)
        return F.binary_cross_entropy_with_logits(outputs, targets, weights, classes)

    def backward(self, dloss: float, cache: Any) -> Array:
        return F.binary_cross_entropy_with_logits_backward(dloss, cache)

    def probabilities(self, outputs: Array) -> np.ndarray:
        # sigmoid(-z), not 1 - sigmoid(z): a small probability keeps its digits
        _check_logits(outputs, 1)
        p_0, _ = F.sigmoid(-outputs)
        p_1, _ = F.sigmoid(outputs)
        return np.concatenate((to_numpy(p_0), to_numpy(p_1)), axis=-1)

    def log_probabilities(self, outputs: Array) -> np.ndarray:
        _check_logits(outputs, 1)
        # softmax of (0, z) is (sigmoid(-z), sigmoid(z))
        z = to_numpy(outputs)
        two_logits = np.concatenate((np.zeros_like(z), z), axis=-1)
        return SoftmaxCrossEntropy().log_probabilities(two_logits)


class MeanSquaredError(Loss):
    """(outputs - y)^2, the mean over all entries, for numbers instead of classes.

    y has the shape of the outputs and the dtype of the model.
    """

    def check(self, y: Array, answers: tuple[int, ...], n_classes: int) -> None:
        checks.floating(y=y)
        checks.shape("y", y, (*answers, n_classes or "n_outputs"), "One target for each output")

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        return F.mean_squared_error(outputs, y, weights)

    def backward(self, dloss: float, cache: Any) -> Array:
        return F.mean_squared_error_backward(dloss, cache)


def _sample_weights(target_weights: Array) -> np.ndarray:
    """Return the weight of each sample: the sum over its targets."""
    target_axes = tuple(range(1, target_weights.ndim))
    dtype = "int64" if target_weights.dtype == bool else "float64"
    return np.asarray(to_numpy(target_weights).sum(axis=target_axes, dtype=dtype))


def _check_logits(outputs: Array, n: int | str = "n_classes") -> None:
    """Check that outputs are numbers, n on the last axis."""
    checks.floating(outputs=outputs)
    checks.shape("outputs", outputs, (None, n))
    checks.positive("the size of outputs' last axis", outputs.shape[-1])


LOSSES: Registry[Loss] = Registry(
    "loss",
    {
        "softmax": SoftmaxCrossEntropy,
        "sigmoid": BinaryCrossEntropy,
        "mean_squared_error": MeanSquaredError,
    },
    table="npformer.losses.LOSSES",
    makes=Loss,
)
"""What ``SequenceClassifier(output=...)`` takes. A builder is called with the options alone and
returns a `Loss`."""


def _confusion(
    labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray, n_classes: int
) -> np.ndarray | None:
    """Return the weight of each class, the row, that was predicted as each class, the column."""
    if n_classes > MOST_CONFUSED:
        return None
    pairs = labels.astype("int64") * n_classes + predictions
    counts = np.bincount(pairs, weights, n_classes * n_classes)
    return np.asarray(counts.reshape(n_classes, n_classes))
