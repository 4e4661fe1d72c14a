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
    y = np.matmul(rows, W, out=context.empty((len(rows), W.shape[1]), x))
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape, context)


def linear_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """`functional.linear_backward`."""
    rows, W, has_bias, x_shape, context = cache
    drows = dy.reshape(-1, W.shape[1])
    dx = np.matmul(drows, W.T, out=context.empty(rows.shape, rows))
    dW = np.matmul(rows.T, drows, out=context.empty(W.shape, W))
    dx = dx.reshape(x_shape)
    return (dx, dW, column_sums(drows)) if has_bias else (dx, dW)
