"""Softmax, with a mask that is exact."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, backend_of, checks


def softmax(x: Array, axis: int = -1, mask: Array | None = None) -> tuple[Array, Any]:
    """y_i = exp(x_i) / sum_j exp(x_j) along one axis.

    Parameters
    ----------
    x : array
        Scores.
    axis : int
        The axis that sums to 1. There is no other default than the last: a softmax that guesses
        its axis normalises over the batch as soon as there is one.
    mask : bool array, broadcastable to x, optional
        True = keep. The others get exactly 0. A row with nothing to keep is all 0.

    Returns
    -------
    y : array, same shape
        Non-negative; sums to 1 along `axis`, or to 0 where everything is masked.
    cache : opaque
        For `softmax_backward`.

    Notes
    -----
    The maximum is subtracted first, which changes nothing in y and keeps exp from overflowing.
    """
    xp = checks.floating(x=x)
    if mask is not None:
        backend_of(x=x, mask=mask)
        checks.boolean("mask", mask)
        x = xp.where(mask, x, -xp.inf)
    top = x.max(axis=axis, keepdims=True)
    if mask is not None:
        top = xp.where(top == -xp.inf, 0.0, top)  # nothing kept: exp(-inf - 0) = 0, never NaN
    y = xp.exp(x - top)
    total = y.sum(axis=axis, keepdims=True)
    if mask is not None:
        total = xp.where(total == 0.0, 1.0, total)
    y /= total
    return y, (y, axis)


def softmax_backward(dy: Array, cache: Any) -> Array:
    """Gradient of `softmax`.

    Parameters
    ----------
    dy : array
        Gradient of the loss with respect to y.
    cache : opaque
        From `softmax`.

    Returns
    -------
    dx : array, same shape

    Notes
    -----
    dy_j / dx_i = y_j ([i = j] - y_i), hence dx_i = y_i (dy_i - sum_j dy_j y_j). Where y is 0, by a
    mask, so is the gradient.
    """
    y, axis = cache
    return y * (dy - (dy * y).sum(axis=axis, keepdims=True))
