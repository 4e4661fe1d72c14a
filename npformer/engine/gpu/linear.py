"""y = x W + b, where the gradient of the bias is summed in a fixed order."""

from typing import Any

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import contiguous
from npformer.engine.gpu.sums import column_sums
from npformer.functional.linear import check_linear


def linear(
    x: Array, W: Array, b: Array | None = None, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.linear`."""
    check_linear(x, W, b)
    rows = x.reshape(-1, W.shape[0])
    y = rows @ W
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape)


def linear_backward(dy: Array, cache: Any, *, of_input: bool = True) -> tuple[Array | None, ...]:
    """Replaces `functional.linear_backward`; dx is None if not `of_input`."""
    rows, W, has_bias, x_shape = cache
    drows = contiguous(dy).reshape(-1, W.shape[1])
    dx = (drows @ W.T).reshape(x_shape) if of_input else None
    dW = rows.T @ drows
    return (dx, dW, column_sums(drows)) if has_bias else (dx, dW)
