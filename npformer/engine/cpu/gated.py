"""(activation(x W_gate + b) * (x W_up + b)) W_down + b: one pass over memory between products."""

from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.activations import ACTIVATIONS
from npformer.engine.cpu.rows import (
    FUSED,
    chunks,
    column_sums,
    few,
    leaf,
    map_fits,
    product,
    scratch,
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
    activate, keep, (d, d_ff) = ACTIVATIONS[activation], context.keep, W_gate.shape
    rows = lay_out(x.reshape(-1, d))
    shifts = [zeros(d_ff, x.dtype) if b is None else b for b in (b_gate, b_up)]
    if few(x, context):
        gate = rows @ W_gate
        activate(gate, shifts[0], gate, False)
        gate *= product(rows, W_up, b_up)
        return product(gate, W_down, b_down).reshape(x.shape), None
    slope, up = (context.empty((len(rows), d_ff), x) for _ in range(2))
    in_place = activation == "relu" or not keep
    gate = slope if in_place else context.empty(slope.shape, x)
    hidden = context.empty(slope.shape, x) if keep else gate
    y = context.empty(rows.shape, x)

    def compute(part: slice) -> None:
        np.matmul(rows[part], W_gate, out=slope[part])
        activate(slope[part], shifts[0], gate[part], keep)
        np.matmul(rows[part], W_up, out=up[part])
        gated_product(gate[part], up[part], shifts[1], hidden[part])
        np.matmul(hidden[part], W_down, out=y[part])
        if b_down is not None:
            y[part] += b_down

    context.map_slices(compute, len(rows))
    has_biases = b_gate is not None, b_up is not None, b_down is not None
    saved = gate, up, hidden, None if in_place else slope
    return y.reshape(x.shape), (rows, saved, (W_gate, W_up, W_down), has_biases, x.shape, context)


def gated_feed_forward_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Replaces `functional.gated_backward`, with biases.

    Gradients: dx, then dW and, if there was a bias, db of gate, up and down.
    """
    rows, (gate, up, hidden, slope), weights, has_biases, x_shape, context = cache
    W_gate, W_up, W_down = weights
    drows = lay_out(dy.reshape(-1, W_down.shape[1]))
    dup, dgate = (context.empty(gate.shape, gate) for _ in range(2))
    dx = context.empty(rows.shape, rows)
    dW = [context.empty(W.shape, W) for W in weights]
    db = [np.empty(len(W_down), W_gate.dtype) for _ in range(2)]

    def compute_dx(part: slice) -> None:
        np.matmul(drows[part], W_down.T, out=dup[part])
        slope_of_part = None if slope is None else slope[part]
        gated_product_backward(dup[part], gate[part], up[part], slope_of_part, dgate[part])
        np.matmul(dgate[part], W_gate.T, out=dx[part])
        for chunk in chunks(part, rows.shape[1]):
            dx_through_up = scratch(dx[chunk].size, dx.dtype).reshape(dx[chunk].shape)
            np.matmul(dup[chunk], W_up.T, out=dx_through_up)
            dx[chunk] += dx_through_up

    def compute_dW(part: slice) -> None:
        np.matmul(hidden[:, part].T, drows, out=dW[2][part])
        for i, dfactor in enumerate((dgate, dup)):
            np.matmul(rows.T, dfactor[:, part], out=dW[i][:, part])
            if has_biases[i]:
                db[i][part] = column_sums(dfactor[:, part])

    context.map_slices(compute_dx, len(rows))
    context.map_slices(compute_dW, len(W_down))
    gradients: list[Array] = [dx.reshape(x_shape)]
    for i, has_bias in enumerate(has_biases):
        gradients.append(dW[i])
        if has_bias:
            gradients.append(db[i] if i < 2 else column_sums(drows))
    return tuple(gradients)


def _loop(gate, up, b, hidden):  # type: ignore[no-untyped-def]
    for i in range(gate.shape[0]):
        for j in range(gate.shape[1]):
            up[i, j] += b[j]
            hidden[i, j] = gate[i, j] * up[i, j]


@leaf(_loop, FUSED)
def gated_product(gate: Array, up: Array, b: Array, hidden: Array) -> None:
    """Replaces the product in `functional.gated`.

    Add b to rows of `up`, and write gate * up into `hidden`.
    """
    for chunk in chunks(len(gate), gate.shape[1]):
        up[chunk] += b
        np.multiply(gate[chunk], up[chunk], out=hidden[chunk])


def _backward_loop(dup, gate, up, slope, dgate):  # type: ignore[no-untyped-def]
    zero = dup.dtype.type(0.0)
    for i in range(gate.shape[0]):
        for j in range(gate.shape[1]):
            d = dup[i, j]
            dup[i, j] = d * gate[i, j]
            if slope is None:
                dgate[i, j] = d * up[i, j] if gate[i, j] > zero else d * up[i, j] * zero
            else:
                dgate[i, j] = d * up[i, j] * slope[i, j]


@leaf(_backward_loop, FUSED)
def gated_product_backward(
    dup: Array, gate: Array, up: Array, slope: Array | None, dgate: Array
) -> None:
    """Replaces the product's backward pass in `functional.gated_backward`.

    `dup` has the gradient of the product; write the gradient of `up` over it. Write the gradient of
    the gate before its activation into `dgate`. `slope` is the derivative of the activation; None:
    that of relu.
    """
    for chunk in chunks(len(gate), gate.shape[1]):
        np.multiply(dup[chunk], up[chunk], out=dgate[chunk])
        dgate[chunk] *= gate[chunk] > 0.0 if slope is None else slope[chunk]
        dup[chunk] *= gate[chunk]
