"""(activation(x W_gate + b) * (x W_up + b)) W_down + b: a chunk of rows at a time.

Between the two passes only the two products are kept, as in `feed_forward`.
"""

from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.activations import ACTIVATIONS
from npformer.engine.cpu.feed_forward import AT_ONCE, space_for
from npformer.engine.cpu.linear import accumulate_product, sum_parts
from npformer.engine.cpu.rows import (
    FUSED,
    chunks,
    column_sums,
    few,
    leaf,
    map_fits,
    product,
    zeros,
)
from npformer.functional.linear import check_linear
from npformer.functional.sums import lay_out


def gated_feed_forward(
    x: Array,
    W_gate: Array,
    b_gate: Array | None,
    W_up: Array,
    b_up: Array | None,
    W_down: Array,
    b_down: Array | None,
    activation: str,
    context: EngineContext,
) -> tuple[Array, Any]:
    """Replaces `functional.gated`, with biases, for a name in `ACTIVATIONS`."""
    if not map_fits(x, W_gate, b_gate):
        check_linear(x, W_gate, b_gate)
    activate, (d, d_ff) = ACTIVATIONS[activation], W_gate.shape
    rows = lay_out(x.reshape(-1, d))
    shifts = [zeros(d_ff, x.dtype) if b is None else b for b in (b_gate, b_up)]
    if few(x, context):
        gate = rows @ W_gate
        activate(gate, shifts[0], gate, None)
        gate *= product(rows, W_up, b_up)
        return product(gate, W_down, b_down).reshape(x.shape), None
    n = len(rows)
    gate_products = context.empty((n, d_ff), x) if context.keep else None
    ups = context.empty((n, d_ff), x) if context.keep else None
    y = context.empty(rows.shape, x)

    def compute(part: slice) -> None:
        spaces = [space_for(part, d_ff, x, context) for _ in range(2)]
        for chunk in chunks(part, d_ff, AT_ONCE):
            gate, up = (space[: chunk.stop - chunk.start] for space in spaces)
            before = gate if gate_products is None else gate_products[chunk]
            up = up if ups is None else ups[chunk]
            np.matmul(rows[chunk], W_gate, out=before)
            np.matmul(rows[chunk], W_up, out=up)
            activate(before, shifts[0], gate, None)
            gated_product(gate, up, shifts[1])
            np.matmul(gate, W_down, out=y[chunk])
            if b_down is not None:
                y[chunk] += b_down

    context.map_slices(compute, n)
    has_biases = b_gate is not None, b_up is not None, b_down is not None
    weights = W_gate, W_up, W_down
    cache = rows, gate_products, ups, activate, shifts, weights, has_biases, x.shape, context
    return y.reshape(x.shape), cache


def gated_feed_forward_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Replaces `functional.gated_backward`, with biases.

    Gradients: dx, then dW and, if there was a bias, db of gate, up and down.
    """
    rows, gate_products, ups, activate, shifts, weights, has_biases, x_shape, context = cache
    W_gate, W_up, W_down = weights
    n, d_ff = ups.shape
    drows = lay_out(dy.reshape(-1, W_down.shape[1]))
    dx = context.empty(rows.shape, rows)

    def compute(part: slice) -> tuple[Array, ...]:
        dW_gate, dW_up, dW_down = (context.empty(W.shape, W) for W in weights)
        db_gate, db_up = np.zeros(d_ff, rows.dtype), np.zeros(d_ff, rows.dtype)
        spaces = [space_for(part, d_ff, rows, context) for _ in range(4)]
        is_first = True
        for chunk in chunks(part, d_ff, AT_ONCE) or [part]:  # of no rows, gradients are 0
            chunk_spaces = [space[: chunk.stop - chunk.start] for space in spaces]
            gate, hidden, dgate, dup = chunk_spaces
            dx_through_up = context.empty(dx[chunk].shape, rows)
            np.matmul(drows[chunk], W_down.T, out=dup)  # the gradient of gate * up
            np.multiply(dup, ups[chunk], out=dgate)
            activate(gate_products[chunk], shifts[0], gate, dgate)
            np.multiply(gate, ups[chunk], out=hidden)
            dup *= gate
            np.matmul(dgate, W_gate.T, out=dx[chunk])
            np.matmul(dup, W_up.T, out=dx_through_up)
            dx[chunk] += dx_through_up
            accumulate_product(hidden.T, drows[chunk], dW_down, is_first, context)
            accumulate_product(rows[chunk].T, dgate, dW_gate, is_first, context)
            accumulate_product(rows[chunk].T, dup, dW_up, is_first, context)
            db_gate += column_sums(dgate)
            db_up += column_sums(dup)
            is_first = False
        return dW_gate, dW_up, dW_down, db_gate, db_up

    dW_gate, dW_up, dW_down, db_gate, db_up = sum_parts(context.map_slices(compute, n))
    db_down = column_sums(drows)
    gradients = [dx.reshape(x_shape)]
    for dW, db, has_bias in zip(
        (dW_gate, dW_up, dW_down), (db_gate, db_up, db_down), has_biases, strict=True
    ):
        gradients.append(dW)
        if has_bias:
            gradients.append(db)
    return tuple(gradients)


def _loop(gate, up, b):  # type: ignore[no-untyped-def]
    for i in range(gate.shape[0]):
        for j in range(gate.shape[1]):
            up[i, j] += b[j]
            gate[i, j] *= up[i, j]


@leaf(_loop, FUSED)
def gated_product(gate: Array, up: Array, b: Array) -> None:
    """Replaces the product in `functional.gated`.

    Add b to rows of `up`, and multiply `gate` by the sum.
    """
    for chunk in chunks(len(gate), gate.shape[1]):
        up[chunk] += b
        gate[chunk] *= up[chunk]
