"""activation(x W1 + b1) W2 + b2: bias, activation and derivative in one pass over memory."""

from typing import Any

from npformer.core import Array, array_module
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous
from npformer.engine.gpu.sums import Columns, column_sums
from npformer.functional.linear import check_linear

FEED_FORWARD = Source("feed_forward")


def feed_forward(
    x: Array, W1: Array, b1: Array, W2: Array, b2: Array, activation: str, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.linear` twice, and an activation between the two.

    activation(x W1 + b1) W2 + b2, for "relu", "gelu", "gelu_tanh", "silu" or "tanh". The derivative
    is written over the pre-activation, which leaves one multiplication to the backward pass.
    """
    check_linear(x, W1, b1)
    rows = x.reshape(-1, W1.shape[0])
    before = rows @ W1
    keep = context.keep and activation != "relu"
    hidden = array_module(x).empty(before.shape, dtype=x.dtype) if keep else before
    c = Columns(*before.shape)
    FEED_FORWARD.launch(f"bias_{activation}", c.grid, before, b1, hidden, *c.sizes, int(keep))
    y = hidden @ W2
    y += b2
    y = y.reshape(*x.shape[:-1], W2.shape[1])
    return y, (rows, hidden, before if keep else None, W1, W2, x.shape)


def feed_forward_backward(
    dy: Array, cache: Any, *, of_input: bool = True
) -> tuple[Array | None, Array, Array, Array, Array]:
    """Replaces `functional.linear_backward` twice, and an activation's backward pass in between.

    Gradients: dx, dW1, db1, dW2, db2; dx is None if not `of_input`.
    """
    rows, hidden, derivative, W1, W2, x_shape = cache
    drows = contiguous(dy).reshape(-1, W2.shape[1])
    dW2 = hidden.T @ drows
    dhidden = drows @ W2.T
    c = Columns(*hidden.shape)
    sums = array_module(dy).empty((c.groups, hidden.shape[1]), dtype=dy.dtype)
    kernel = "relu_backward" if derivative is None else "smooth_activation_backward"
    saved = hidden if derivative is None else derivative
    FEED_FORWARD.launch(kernel, c.grid, dhidden, saved, sums, *c.sizes)
    dW1 = rows.T @ dhidden
    dx = (dhidden @ W1.T).reshape(x_shape) if of_input else None
    return dx, dW1, column_sums(sums), dW2, column_sums(drows)
