"""y = x W + b with reused memory, and with sums over rows as products.

This does not make a training step faster (`python -m benchmarks parts`). It saves memory: a step
allocates almost nothing.
"""

from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import column_sums, few, map_fits, product
from npformer.functional.linear import check_linear
from npformer.functional.sums import lay_out


def linear(
    x: Array, W: Array, b: Array | None = None, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.linear`."""
    if not map_fits(x, W, b):
        check_linear(x, W, b)
    rows = lay_out(x.reshape(-1, W.shape[0]))
    W = lay_out(W)
    if few(x, context):
        return product(rows, W, b).reshape(*x.shape[:-1], W.shape[1]), None
    y = context.empty((len(rows), W.shape[1]), x)

    def compute(part: slice) -> None:
        np.matmul(rows[part], W, out=y[part])
        if b is not None:
            y[part] += b

    context.map_slices(compute, len(rows))
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape, context)


def linear_backward(dy: Array, cache: Any, *, of_input: bool = True) -> tuple[Array | None, ...]:
    """Replaces `functional.linear_backward`; dx is None if not `of_input`."""
    rows, W, has_bias, x_shape, context = cache
    drows = lay_out(dy.reshape(-1, W.shape[1]))
    dx = gradient_of_input(drows, W, context).reshape(x_shape) if of_input else None
    dW, db = gradients_of_map(drows, rows, context)
    return (dx, dW, db) if has_bias else (dx, dW)


def gradient_of_input(dy: Array, W: Array, context: EngineContext) -> Array:
    """Replaces `functional.linear_backward`, for dx alone; dy is (rows, outputs)."""
    dx = context.empty((len(dy), len(W)), W)

    def compute(part: slice) -> None:
        np.matmul(dy[part], W.T, out=dx[part])

    context.map_slices(compute, len(dy))
    return dx


def gradients_of_map(dy: Array, x: Array, context: EngineContext) -> tuple[Array, Array]:
    """Replaces `functional.linear_backward`, for dW and db; dy and x are (rows, features)."""
    d_in, d_out = x.shape[1], dy.shape[1]
    dW, db = context.empty((d_in, d_out), x), np.empty(d_out, x.dtype)

    def compute(part: slice) -> None:
        np.matmul(x.T, dy[:, part], out=dW[:, part])
        db[part] = column_sums(dy[:, part])

    context.map_slices(compute, d_out)
    return dW, db


def accumulate_product(
    a: Array, b: Array, target: Array, is_first: bool, context: EngineContext
) -> None:
    """Add a @ b to `target`, or write it there if it is the first of several products."""
    if is_first:
        np.matmul(a, b, out=target)
        return
    product_of_chunk = context.empty(target.shape, target)
    np.matmul(a, b, out=product_of_chunk)
    target += product_of_chunk


def sum_parts(parts: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sums of the arrays of all parts, which are one tuple for each thread."""
    totals, *others = parts
    for arrays in others:
        for total, array in zip(totals, arrays, strict=True):
            total += array
    return totals
