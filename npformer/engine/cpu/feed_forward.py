"""activation(x W1 + b1) W2 + b2, a chunk of rows at a time.

Between the two passes only the products x W1 are kept: of the three largest arrays of a training
step one remains. Hidden activations, their derivatives and gradients live for a chunk of rows. To
compute an activation again takes a little more time than to read it from memory.

Without this a training step takes 99 % longer on S, 38 % on M, 34 % on X (`python -m benchmarks
kernels`).
"""

from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.activations import ACTIVATIONS
from npformer.engine.cpu.linear import accumulate_product, sum_parts
from npformer.engine.cpu.rows import chunks, column_sums, few, map_fits, product
from npformer.functional.linear import check_linear
from npformer.functional.sums import lay_out

AT_ONCE = 1 << 20
"""Hidden entries of a chunk. With fewer, adding up the weights' gradients takes a visible time."""


def feed_forward(
    x: Array, W1: Array, b1: Array, W2: Array, b2: Array, activation: str, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.linear` twice, and an activation between the two.

    activation(x W1 + b1) W2 + b2, for a name in `ACTIVATIONS`.
    """
    if not map_fits(x, W1, b1):
        check_linear(x, W1, b1)
    activate = ACTIVATIONS[activation]
    rows = lay_out(x.reshape(-1, W1.shape[0]))
    if few(x, context):
        hidden = rows @ W1
        activate(hidden, b1, hidden, None)
        return product(hidden, W2, b2).reshape(*x.shape[:-1], W2.shape[1]), None
    n, d_ff = len(rows), W1.shape[1]
    products = context.empty((n, d_ff), x) if context.keep else None
    y = context.empty((n, W2.shape[1]), x)

    def compute(part: slice) -> None:
        space = space_for(part, d_ff, x, context)
        for chunk in chunks(part, d_ff, AT_ONCE):
            hidden = space[: chunk.stop - chunk.start]
            before = hidden if products is None else products[chunk]
            np.matmul(rows[chunk], W1, out=before)
            activate(before, b1, hidden, None)
            np.matmul(hidden, W2, out=y[chunk])
            y[chunk] += b2

    context.map_slices(compute, n)
    y = y.reshape(*x.shape[:-1], W2.shape[1])
    return y, (rows, products, activate, W1, b1, W2, x.shape, context)


def feed_forward_backward(
    dy: Array, cache: Any, *, of_input: bool = True
) -> tuple[Array | None, Array, Array, Array, Array]:
    """Replaces `functional.linear_backward` twice, and an activation's backward pass in between.

    Gradients: dx, dW1, db1, dW2, db2; dx is None if not `of_input`.
    """
    rows, products, activate, W1, b1, W2, x_shape, context = cache
    n, d_ff = products.shape
    drows = lay_out(dy.reshape(-1, W2.shape[1]))
    dx = context.empty(rows.shape, rows) if of_input else None

    def compute(part: slice) -> tuple[Array, Array, Array]:
        dW1, dW2 = context.empty(W1.shape, W1), context.empty(W2.shape, W2)
        db1 = np.zeros(d_ff, W1.dtype)
        spaces = [space_for(part, d_ff, rows, context) for _ in range(2)]
        is_first = True
        for chunk in chunks(part, d_ff, AT_ONCE) or [part]:  # of no rows, gradients are 0
            hidden, dhidden = (space[: chunk.stop - chunk.start] for space in spaces)
            np.matmul(drows[chunk], W2.T, out=dhidden)
            activate(products[chunk], b1, hidden, dhidden)
            if dx is not None:
                np.matmul(dhidden, W1.T, out=dx[chunk])
            accumulate_product(hidden.T, drows[chunk], dW2, is_first, context)
            accumulate_product(rows[chunk].T, dhidden, dW1, is_first, context)
            db1 += column_sums(dhidden)
            is_first = False
        return dW1, db1, dW2

    dW1, db1, dW2 = sum_parts(context.map_slices(compute, n))
    return None if dx is None else dx.reshape(x_shape), dW1, db1, dW2, column_sums(drows)


def space_for(part: slice, d_ff: int, reference: Array, context: EngineContext) -> Array:
    """Lend memory for the largest chunk of some rows."""
    largest = max((chunk.stop - chunk.start for chunk in chunks(part, d_ff, AT_ONCE)), default=0)
    return context.empty((largest, d_ff), reference)
