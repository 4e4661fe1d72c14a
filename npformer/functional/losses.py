"""Losses: means, as arrays without axes.

In the backward passes, dloss is the gradient with respect to the mean: 1.0 if it is the final loss.
"""

from numbers import Real
from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.functional.activations import sigmoid
from npformer.functional.embedding import check_ids

NO_LABEL = -1
"""The label -1 marks a position without a label, which the mean leaves out."""


def softmax_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0
) -> tuple[Array, Any]:
    """Mean over labels of -sum_c q_c log softmax(logits)_c, in nats; 0 if there is no label.

    Parameters
    ----------
    logits : array, shape (..., n_classes)
    labels : int array, shape (...)
        The right class, from 0 to n_classes - 1, or -1 for a position that has no label.
    label_smoothing : float
        q is 1 - label_smoothing at the right class, plus label_smoothing / n_classes everywhere
        (Szegedy et al., 2016; 0.1 in Vaswani et al., 2017).
    """
    xp = checks.floating(logits=logits)
    backend_of(logits=logits, labels=labels)
    checks.shape("logits", logits, (None, "n_classes"))
    n_classes = logits.shape[-1]
    if n_classes == 0:
        raise ValueError(f"logits has shape {tuple(logits.shape)}; expected at least one class")
    checks.shape("labels", labels, logits.shape[:-1], "One label for each row of logits")
    checks.rate("label_smoothing", label_smoothing)
    label_smoothing = float(label_smoothing)  # a NumPy number would make float64 of float32
    if labels.dtype.kind == "i":
        has_label = labels != NO_LABEL
        right = xp.where(has_label, labels, 0)
    else:  # unsigned labels cannot be -1; anything else is refused below
        has_label, right = xp.ones(labels.shape, dtype=bool), labels
    check_ids("labels", right, n_classes, f"logits have {n_classes} classes (-1: no label)")

    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))  # [..., n_classes]
    of_right = xp.take_along_axis(log_p, right[..., None], axis=-1)[..., 0]  # [...]
    each = -(1.0 - label_smoothing) * of_right
    if label_smoothing > 0.0:  # 0 * -inf, for a class with logit -inf, would be NaN
        each = each - label_smoothing * log_p.mean(axis=-1)
    count = xp.maximum(has_label.sum(), 1).astype(logits.dtype)
    loss = xp.where(has_label, each, 0.0).sum() / count
    return loss, (log_p, right, has_label, count, label_smoothing)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """dlogits = (p - q) dloss / number of labels, with p = softmax(logits).

    In one row, -sum_c q_c log p_c = log sum_k exp(z_k) - sum_c q_c z_c, because q sums to 1. By
    z_i, the derivative of the first term is p_i, and that of the second sum is q_i.
    """
    log_p, right, has_label, count, label_smoothing = cache
    xp = array_module(log_p)
    n_classes = log_p.shape[-1]
    is_right = right[..., None] == xp.arange(n_classes)
    q = is_right.astype(log_p.dtype) * (1.0 - label_smoothing) + label_smoothing / n_classes
    # loss = sum over labels of -sum_c q_c log p_c, / count
    drow = (xp.exp(log_p) - q) * (_number(dloss) / count)
    return xp.where(has_label[..., None], drow, 0.0)


def binary_cross_entropy_with_logits(logits: Array, targets: Array) -> tuple[Array, Any]:
    """Mean of -t log sigmoid(z) - (1 - t) log(1 - sigmoid(z)), in nats; 0 if there is none.

    Parameters
    ----------
    logits : array, any shape
        z, before the sigmoid.
    targets : array, same shape and dtype
        t, from 0 to 1.
    """
    xp = checks.floating(logits=logits, targets=targets)
    checks.shape("targets", targets, logits.shape, "One target for each logit")
    # The same as max(z, 0) - z t + log(1 + exp(-|z|)), in which no exponential can overflow.
    each = xp.maximum(logits, 0.0) - logits * targets + xp.log1p(xp.exp(-xp.abs(logits)))
    return each.sum() / max(each.size, 1), (logits, targets)


def binary_cross_entropy_with_logits_backward(dloss: Array | float, cache: Any) -> Array:
    """dlogits = (sigmoid(z) - t) dloss / number of logits.

    Each is log(1 + exp(z)) - t z, and the derivative of the logarithm by z is
    exp(z) / (1 + exp(z)) = sigmoid(z).
    """
    logits, targets = cache
    p, _ = sigmoid(logits)
    return (p - targets) * (_number(dloss) / max(logits.size, 1))


def mean_squared_error(prediction: Array, target: Array) -> tuple[Array, Any]:
    """Mean of (prediction - target)^2 over all entries; 0 if there are none.

    Parameters
    ----------
    prediction : array, any shape
    target : array, same shape and dtype
        Nothing is broadcast: a prediction (n, 1) with a target (n,) would compare every pair.
    """
    checks.floating(prediction=prediction, target=target)
    checks.shape("target", target, prediction.shape, "One target for each prediction")
    difference = prediction - target
    return (difference * difference).sum() / max(difference.size, 1), difference


def mean_squared_error_backward(dloss: Array | float, cache: Any) -> Array:
    """dprediction = 2 (prediction - target) dloss / n, the derivative of a square."""
    difference = cache
    # loss = (difference * difference).sum() / size
    return difference * (_number(dloss) * (2.0 / max(difference.size, 1)))


def _number(dloss: Array | float) -> Array | float:
    """Return a NumPy number as Python's, because NumPy's would turn float32 arrays into float64."""
    if isinstance(dloss, Real) and not isinstance(dloss, bool):
        return float(dloss)
    checks.gradient(dloss, (), "dloss")
    return dloss
