"""Losses: means, as arrays without axes.

In the backward passes, dloss is the gradient with respect to the mean: 1.0 if it is the final loss.
"""

from numbers import Real
from typing import Any

from npformer.core import Array, Module, array_module, backend_of, checks
from npformer.functional.activations import sigmoid
from npformer.functional.embedding import check_ids
from npformer.functional.sums import mean_along, sum_along

NO_LABEL = -1
"""The label -1 marks a position without a label, which the mean leaves out."""


def softmax_cross_entropy(
    logits: Array,
    labels: Array,
    label_smoothing: float = 0.0,
    weights: Array | None = None,
    class_weights: Array | None = None,
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
    weights : array, shape (...), optional
        s, at least 0. The mean is then sum_i s_i loss_i / sum_i s_i.
    class_weights : array, shape (n_classes,), optional
        w, at least 0. q_c becomes w_c q_c, and a label with the class y counts w_y times, as with
        PyTorch's ``CrossEntropyLoss(weight=w)``. Labels that count 0 times are left out.
    """
    xp = check_labels(logits, labels)
    right = xp.maximum(labels, 0)  # `NO_LABEL` is -1, which counts 0 times
    shifted = logits - logits.max(axis=-1, keepdims=True)  # so that no exponential overflows
    # log sum exp, of which the largest logit's own 1 is left out: log(1 + rest) would lose the
    # digits of a small rest, which is the loss of a sure prediction.
    at_top = shifted == 0.0
    rest = sum_along(xp.where(at_top, 0.0, xp.exp(shifted)), axis=-1, keepdims=True)
    ties = at_top.sum(axis=-1, keepdims=True).astype(shifted.dtype) - 1.0
    log_p = shifted - xp.log1p(rest + ties)  # [..., n_classes]
    losses = -xp.take_along_axis(log_p, right[..., None], axis=-1)[..., 0]  # [...]
    counts, weighing = (labels >= 0).astype(log_p.dtype), None  # 1 for each label, 0 for none
    if str(label_smoothing) != "0.0" or weights is not None or class_weights is not None:
        checks.rate("label_smoothing", label_smoothing)
        # Python's number, because NumPy's would turn float32 arrays into float64.
        weighing = float(label_smoothing), weights, class_weights
        losses, counts = _weigh(log_p, right, counts, weighing)
    total = _positive(xp, counts.sum())  # the mean is over labels, not over positions
    loss = xp.where(counts > 0.0, losses, 0.0).sum() / total  # a number: ()
    return loss, (log_p, right, counts, total, weighing)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """dlogits = (p - q) dloss / number of labels, with p = softmax(logits), if each counts as 1.

    In one row, -sum_c q_c log p_c = (sum_c q_c) log sum_k exp(z_k) - sum_c q_c z_c. By z_i, the
    derivative of the first term is (sum_c q_c) p_i, and that of the second sum is q_i. Without
    class weights q sums to 1.
    """
    log_p, right, counts, total, weighing = cache
    xp = array_module(log_p)
    is_right = right[..., None] == xp.arange(log_p.shape[-1])  # [..., n_classes]
    share = _number(dloss) / total  # of one label: the mean divides by them
    # p - q, for a q of 1 at the right class: p - 1 would cancel where p is nearly 1.
    error = xp.where(is_right, xp.expm1(log_p), xp.exp(log_p))
    if weighing is not None:
        label_smoothing, weights, class_weights = weighing
        one = is_right.astype(log_p.dtype)
        q = one * (1.0 - label_smoothing) + label_smoothing / one.shape[-1]  # still sums to 1
        if class_weights is not None:
            q = class_weights * q  # no longer sums to 1, so p is scaled alike
        scale = sum_along(q, axis=-1, keepdims=True)
        error = error * scale + (one * scale - q)  # p scale - q
        share = share if weights is None else (weights * share)[..., None]
    # loss = sum over labels of -weight sum_c q_c log p_c, / total
    return xp.where(counts[..., None] > 0.0, error * share, 0.0)


def binary_cross_entropy_with_logits(
    logits: Array,
    targets: Array,
    weights: Array | None = None,
    class_weights: Array | None = None,
) -> tuple[Array, Any]:
    """Mean of -t log sigmoid(z) - (1 - t) log(1 - sigmoid(z)), in nats; 0 if there is none.

    Parameters
    ----------
    logits : array, any shape
        z, before the sigmoid.
    targets : array, same shape and dtype
        t, from 0 to 1.
    weights : array, same shape, optional
        s, at least 0. The mean is then sum_i s_i loss_i / sum_i s_i.
    class_weights : array, shape (2,), optional
        w, at least 0: t becomes w_1 t, and 1 - t becomes w_0 (1 - t). A target counts as much as
        its class weighs, and the class is 1 above 0.5, as in `softmax_cross_entropy`.
    """
    xp = checks.floating(logits=logits, targets=targets)
    checks.shape("targets", targets, logits.shape, "One target for each logit")
    target, target_sum = targets, 1.0  # t, and t + (1 - t)
    of_each: Array | float = 1.0  # s: how much each target weighs
    total: Array | int = max(logits.size, 1)  # what the mean divides by
    if weights is not None or class_weights is not None:
        ones = xp.ones_like(logits)
        of_each = ones if weights is None else _check_weights(weights, logits, logits.shape)
        counts = of_each
        if class_weights is not None:
            _check_weights(class_weights, logits, (2,), "class_weights", "class")
            target = class_weights[1] * targets  # w_1 t
            target_sum = target + class_weights[0] * (1.0 - targets)  # w_1 t + w_0 (1 - t)
            # of the target's class
            counts = of_each * class_weights[(targets > 0.5).astype("int64")]
        of_each, total = (
            xp.where(counts > 0.0, of_each, 0.0),
            _positive(xp, counts.reshape(-1).sum()),
        )
    # target_sum log(1 + exp(z)) - target z, in a form in which no exponential can overflow.
    log1p = xp.log1p(xp.exp(-xp.abs(logits)))
    # one loss for each logit
    losses = xp.maximum(logits, 0.0) * target_sum - logits * target + log1p * target_sum
    return (losses * of_each).sum() / total, (logits, target, target_sum, of_each, total)


def binary_cross_entropy_with_logits_backward(dloss: Array | float, cache: Any) -> Array:
    """dlogits = (sigmoid(z) - t) dloss / number of logits.

    Each is log(1 + exp(z)) - t z, and the derivative of the logarithm by z is
    exp(z) / (1 + exp(z)) = sigmoid(z).
    """
    logits, target, target_sum, of_each, total = cache
    # loss = ((target_sum log(1 + exp(z)) - target z) of_each).sum() / total
    # p = sigmoid(z) is the derivative of log(1 + exp(z)). p target_sum - target would cancel where
    # the right class is nearly sure, so it is written as a sum of what each class is wrong by.
    p, (_, rest) = sigmoid(logits)  # rest = 1 - p
    return (p * (target_sum - target) - rest * target) * (of_each * (_number(dloss) / total))


def mean_squared_error(
    prediction: Array, target: Array, weights: Array | None = None
) -> tuple[Array, Any]:
    """Mean of (prediction - target)^2 over all entries; 0 if there are none.

    Parameters
    ----------
    prediction : array, any shape
    target : array, same shape and dtype
        Nothing is broadcast: a prediction (n, 1) with a target (n,) would compare every pair.
    weights : array, shape of the prediction without its last axis, optional
        s, at least 0, of rows. The mean is then sum_i s_i loss_i / sum_i s_i, for the mean loss_i
        of row i.
    """
    xp = checks.floating(prediction=prediction, target=target)
    checks.shape("target", target, prediction.shape, "One target for each prediction")
    difference = prediction - target  # the gradient needs nothing else of the two
    of_rows: Array | float = 1.0  # s: how much each row weighs
    total: Array | int = max(difference.size, 1)  # what the mean divides by
    if weights is not None:
        of_rows = _check_weights(weights, prediction, prediction.shape[:-1])[..., None]
        difference = xp.where(of_rows > 0.0, difference, 0.0)  # a target left out may be NaN
        total = _positive(xp, of_rows.reshape(-1).sum() * prediction.shape[-1])
    return (difference * difference * of_rows).sum() / total, (difference, of_rows, total)


def mean_squared_error_backward(dloss: Array | float, cache: Any) -> Array:
    """dprediction = 2 (prediction - target) dloss / n, the derivative of a square."""
    difference, of_rows, total = cache
    # loss = (difference * difference * of_rows).sum() / total
    return difference * (of_rows * (_number(dloss) * (2.0 / total)))


def _number(dloss: Array | float) -> Array | float:
    """Return a NumPy number as Python's, because NumPy's would turn float32 arrays into float64."""
    if isinstance(dloss, Real) and not isinstance(dloss, bool):
        return float(dloss)
    checks.gradient(dloss, (), "dloss")
    return dloss


def check_labels(logits: Array, labels: Array) -> Module:
    """Check that there is a label for each row of logits; return the module of the arrays."""
    xp = checks.floating(logits=logits)
    if logits.ndim == 0 or (n := logits.shape[-1]) == 0:
        checks.shape("logits", logits, (None, "n_classes"))
        raise ValueError(f"logits has shape {tuple(logits.shape)}; expected at least one class")
    if getattr(labels, "shape", None) != logits.shape[:-1]:
        backend_of(logits=logits, labels=labels)
        checks.shape("labels", labels, logits.shape[:-1], "One label for each row of logits")
    check_ids("labels", labels, n, f"there are {n} classes (-1: no label)", NO_LABEL, logits=logits)
    return xp


def _weigh(log_p: Array, right: Array, counts: Array, weighing: Any) -> tuple[Array, Array]:
    """Return the loss of each label, times its weight, and how much the label counts."""
    label_smoothing, weights, class_weights = weighing
    xp, terms = array_module(log_p), log_p
    if weights is not None:
        counts = xp.where(counts > 0.0, _check_weights(weights, log_p, right.shape), 0.0)
    if class_weights is not None:
        _check_weights(class_weights, log_p, log_p.shape[-1:], "class_weights", "class")
        terms = class_weights * xp.where(class_weights > 0.0, log_p, 0.0)  # 0 * -inf is NaN
        counts = counts * class_weights[right]
    of_right = xp.take_along_axis(terms, right[..., None], axis=-1)[..., 0]  # [...]
    losses = -(1.0 - label_smoothing) * of_right
    if label_smoothing > 0.0:  # 0 * -inf, for a class with logit -inf, would be NaN
        losses = losses - label_smoothing * mean_along(terms, axis=-1)
    return xp.where(counts > 0.0, losses, 0.0) * (1.0 if weights is None else weights), counts


def _check_weights(
    weights: Array, like: Array, shape: Any, name: str = "weights", each: str = "term of the mean"
) -> Array:
    checks.floating(**{name: weights}, outputs=like)
    checks.shape(name, weights, shape, f"One weight for each {each}")
    return weights


def _positive(xp: Any, total: Array) -> Array:
    """Return the sum of weights, or 1 if it is 0: then there is nothing to divide."""
    return xp.where(total > 0.0, total, 1.0).astype(total.dtype)
