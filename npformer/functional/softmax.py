"""Softmax, with an optional mask."""

from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.functional.broadcasting import broadcast_shape
from npformer.functional.sums import sum_along


def softmax(x: Array, axis: int = -1, mask: Array | None = None) -> tuple[Array, Any]:
    """y_i = exp(x_i) / sum_j exp(x_j) along one axis.

    Parameters
    ----------
    x : array, any shape
    axis : int
        The axis along which y sums to 1.
    mask : bool array, broadcastable to x, optional
        True = keep. Other entries get exactly 0, and so does their gradient, whatever x and dy hold
        there. If nothing along the axis is kept, or all is -inf, y is 0 there.
    """
    xp = checks.floating(x=x)
    if type(axis) is not int or axis != -1 or x.ndim == 0:
        axis = checks.whole("axis", axis, at_least=-x.ndim, at_most=x.ndim - 1)
    if mask is not None:
        backend_of(x=x, mask=mask)
        checks.boolean("mask", mask)
        if mask.shape != x.shape and broadcast_shape(mask.shape, x.shape, reference=x) is None:
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}; expected one that broadcasts to x, "
                f"{tuple(x.shape)}"
            )
        x = xp.where(mask, x, -xp.inf)  # exp(-inf) = 0
    if x.shape[axis] == 0:
        return xp.zeros_like(x), (x, axis, None)  # of nothing there is no largest
    top = x.max(axis=axis, keepdims=True)  # [..., 1], if the axis is the last
    top = xp.where(top == -xp.inf, 0.0, top)  # if nothing is kept: exp(-inf - 0) = 0, never NaN
    y = xp.exp(x - top)  # - top changes nothing in y / total, and nothing can overflow
    total = sum_along(y, axis, keepdims=True)  # at least exp(0) = 1, unless nothing is kept
    y /= xp.where(total == 0.0, 1.0, total)  # 0 / 1 where nothing is kept
    return y, (y, axis, mask)


def softmax_backward(dy: Array, cache: Any) -> Array:
    """dx_i = y_i (dy_i - sum_j dy_j y_j), which is 0 where y is.

    Every y_j = exp(x_j) / Z depends on x_i through the sum of exponentials Z. By the quotient rule,
    its derivative is

        [i = j] exp(x_j) / Z - exp(x_j) exp(x_i) / Z^2 = y_j ([i = j] - y_i).

    Multiplied by dy_j, the loss's gradient with respect to y_j, and summed over j, this is the
    formula above.
    """
    y, axis, mask = cache
    checks.gradient(dy, y.shape)
    if mask is not None:
        dy = array_module(dy).where(mask, dy, 0.0)  # 0 * NaN would be NaN
    # dy, less its mean weighted by y; then times y.
    return y * (dy - sum_along(dy * y, axis, keepdims=True))
