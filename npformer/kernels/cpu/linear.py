"""y = x W + b in memory that is lent, with sums over rows as products.

Without it a training step takes no longer (`python -m benchmarks parts`). What it gains is memory:
it is lent, so a step allocates almost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.linear import check_linear
from npformer.kernels.cpu.rows import column_sums
from npformer.module import Context


def linear(x: Array, W: Array, b: Array | None = None, *, context: Context) -> tuple[Array, Any]:
    """`functional.linear`.

    Parameters
    ----------
    x, W, b : array
        As there.
    context : Context
        Lends the memory.
    """
    check_linear(x, W, b)
    rows = x.reshape(-1, W.shape[0])
    y = context.empty((len(rows), W.shape[1]), x)

    def compute(some: slice) -> None:
        np.matmul(rows[some], W, out=y[some])
        if b is not None:
            y[some] += b

    context.in_parts(compute, len(rows))
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape, context)


def linear_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """`functional.linear_backward`."""
    rows, W, has_bias, x_shape, context = cache
    dx, dW, db = gradients_of_product(dy.reshape(-1, W.shape[1]), rows, W, context)
    dx = dx.reshape(x_shape)
    return (dx, dW, db) if has_bias else (dx, dW)


def gradients_of_product(
    dy: Array, x: Array, W: Array, context: Context
) -> tuple[Array, Array, Array]:
    """Gradients of x W + b: dx, dW, db.

    Parameters
    ----------
    dy : array, shape (rows, outputs)
    x : array, shape (rows, inputs)
    W : array, shape (inputs, outputs)
    context : Context
        Lends the memory.
    """
    dx, dW = context.empty(x.shape, x), context.empty(W.shape, W)
    db = np.empty(W.shape[1], W.dtype)

    def of_rows(some: slice) -> None:
        np.matmul(dy[some], W.T, out=dx[some])

    def of_outputs(some: slice) -> None:
        np.matmul(x.T, dy[:, some], out=dW[:, some])
        db[some] = column_sums(dy[:, some])

    context.in_parts(of_rows, len(x))
    context.in_parts(of_outputs, W.shape[1])
    return dx, dW, db
