"""The mean of two answers: the logarithm of the mean of two softmax distributions."""

from typing import Any

from npformer.core import Array, checks


def mean_of_softmax(a: Array, b: Array) -> tuple[Array, Any]:
    """y = log((softmax(a) + softmax(b)) / 2), along the last axis.

    It is a mixture of two experts of equal weight (Jacobs et al., 1991). softmax(y) is the mean of
    both distributions, so y is what a loss of logits takes.

    Parameters
    ----------
    a, b : array, shape (..., n_classes)
    """
    xp = checks.floating(a=a, b=b)
    checks.shape("b", b, tuple(a.shape), "As a")
    log_p, log_q = _log_softmax(xp, a), _log_softmax(xp, b)
    top = xp.maximum(log_p, log_q)  # so that exp cannot give 0 twice
    y = top + xp.log(0.5 * (xp.exp(log_p - top) + xp.exp(log_q - top)))
    return y, (log_p, log_q, y)


def mean_of_softmax_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """da = r dy - p sum(r dy) with p = softmax(a) and r = p / (p + q), and db with q for p.

    r is the share that a has in the mean: of each class, that answer learns more that already says
    more of it. But if q is right and sure, r is still p / (p + 1), so a goes on learning. In a sum
    a + b it would stop, for the loss of a sum is then 0.
    """
    log_p, log_q, y = cache
    xp = checks.gradient(dy, y.shape)
    gradients = []
    for log_of_one in (log_p, log_q):
        # y = log(0.5 (exp(log_p) + exp(log_q)))
        dlog = 0.5 * xp.exp(log_of_one - y) * dy
        # log_p = a - log sum exp(a)
        gradients.append(dlog - xp.exp(log_of_one) * dlog.sum(axis=-1, keepdims=True))
    return gradients[0], gradients[1]


def _log_softmax(xp: Any, x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
