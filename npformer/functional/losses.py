"""Losses: logits in, a mean out."""

from __future__ import annotations

from numbers import Real
from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.functional.activations import sigmoid
from npformer.functional.embedding import check_ids

NO_LABEL = -1
"""A label of -1 says that this position has none: it counts in neither loss nor mean."""


def softmax_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0
) -> tuple[Array, Any]:
    """Mean over labels of -sum_c q_c log softmax(logits)_c.

    Parameters
    ----------
    logits : array, shape (..., n_classes)
        Scores before the softmax.
    labels : int array, shape (...)
        The right class, from 0 to n_classes - 1, or -1 for a position that has no label.
    label_smoothing : float
        q is 1 - label_smoothing at the right class, plus label_smoothing / n_classes everywhere
        (Szegedy et al., 2016; 0.1 in Vaswani et al., 2017).

    Returns
    -------
    loss : array of no axes
        In nats. 0 if there is no label at all.
    cache : opaque
        For `softmax_cross_entropy_backward`.

    Raises
    ------
    TypeError
        Labels are not whole numbers.
    ValueError
        A label is out of range, or the shapes do not fit.
    """
    xp = checks.floating(logits=logits)
    backend_of(logits=logits, labels=labels)
    checks.shape("logits", logits, (None, "n_classes"))
    n_classes = logits.shape[-1]
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
    if label_smoothing > 0.0:  # 0 times a class that is ruled out, at -inf, would be NaN
        each = each - label_smoothing * log_p.mean(axis=-1)
    count = xp.maximum(has_label.sum(), 1).astype(logits.dtype)
    loss = xp.where(has_label, each, 0.0).sum() / count
    return loss, (log_p, right, has_label, count, label_smoothing)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """Gradient of `softmax_cross_entropy` with respect to the logits.

    Parameters
    ----------
    dloss : float
        Gradient of whatever comes after with respect to the loss: 1.0 if nothing does.
    cache : opaque
        From `softmax_cross_entropy`.

    Returns
    -------
    dlogits : array, shape (..., n_classes)

    Notes
    -----
    For one row, d(-sum_c q_c log p_c) / dlogits = p - q, because q sums to 1.
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
    """Mean of -t log sigmoid(z) - (1 - t) log(1 - sigmoid(z)).

    Parameters
    ----------
    logits : array, any shape
        z, before the sigmoid.
    targets : array, same shape and dtype
        t, from 0 to 1.

    Returns
    -------
    loss : array of no axes
        In nats.
    cache : opaque
        For `binary_cross_entropy_with_logits_backward`.

    Raises
    ------
    ValueError
        Shapes differ.

    Notes
    -----
    The same as max(z, 0) - z t + log(1 + exp(-|z|)), in which no exponential can overflow.
    """
    xp = checks.floating(logits=logits, targets=targets)
    checks.shape("targets", targets, logits.shape, "One target for each logit")
    each = xp.maximum(logits, 0.0) - logits * targets + xp.log1p(xp.exp(-xp.abs(logits)))
    return each.mean(), (logits, targets)


def binary_cross_entropy_with_logits_backward(dloss: Array | float, cache: Any) -> Array:
    """Gradient of `binary_cross_entropy_with_logits`: (sigmoid(z) - t) / number of logits.

    Parameters
    ----------
    dloss : float
        Gradient of whatever comes after with respect to the loss: 1.0 if nothing does.
    cache : opaque
        From `binary_cross_entropy_with_logits`.

    Returns
    -------
    dlogits : array, shape of logits
    """
    logits, targets = cache
    p, _ = sigmoid(logits)
    return (p - targets) * (_number(dloss) / logits.size)


def mean_squared_error(prediction: Array, target: Array) -> tuple[Array, Any]:
    """Mean of (prediction - target)^2 over all entries.

    Parameters
    ----------
    prediction : array, any shape
    target : array, same shape and dtype

    Returns
    -------
    loss : array of no axes
        In the square of the target's unit.
    cache : opaque
        For `mean_squared_error_backward`.

    Raises
    ------
    ValueError
        Shapes differ: nothing is broadcast, for that is how a (n, 1) prediction meets a (n,)
        target and learns nothing.
    """
    checks.floating(prediction=prediction, target=target)
    checks.shape("target", target, prediction.shape, "One target for each prediction")
    difference = prediction - target
    return (difference * difference).mean(), difference


def mean_squared_error_backward(dloss: Array | float, cache: Any) -> Array:
    """Gradient of `mean_squared_error` with respect to the prediction: 2 (prediction - target) / n.

    Parameters
    ----------
    dloss : float
        Gradient of whatever comes after with respect to the loss: 1.0 if nothing does.
    cache : opaque
        From `mean_squared_error`.

    Returns
    -------
    dprediction : array, shape of prediction
    """
    difference = cache
    return difference * (_number(dloss) * (2.0 / difference.size))


def _number(dloss: Array | float) -> Array | float:
    """Return Python's number for NumPy's, which would make float64 of float32."""
    return float(dloss) if isinstance(dloss, Real) else dloss
