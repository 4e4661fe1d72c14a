"""The Dense Synthesizer: W1 and W_V as one product, and one product per head for the whole batch.

With H = relu(x W1 + b1) by head, P = softmax(H W2 + b2). Heads are the first axis, so that the
rows of the whole batch form one matrix for each head, and H W2 is one product per head:

    (heads, batch * length, d_head) @ (heads, d_head, length)
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.feed_forward import FEED_FORWARD
from npformer.engine.gpu.heads import (
    heads_to_rows,
    padding_of,
    rows_to_heads,
    softmax_backward_in_place,
    softmax_of_scores,
)
from npformer.engine.gpu.source import contiguous
from npformer.engine.gpu.sums import Columns, column_sums
from npformer.functional.dense_synthesizer import check_columns


def dense_heads(
    x: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    W_value: Array,
    b_value: Array,
    causal: bool,
    context: EngineContext,
) -> tuple[Array, Any]:
    """Replaces `functional.linear` and `functional.dense_synthesizer`, by head.

    concat(head_1, ..., head_h), head_i = softmax(relu(x W1^i + b1^i) W2^i + b2^i) x W_V^i, on x of
    shape (batch, length, d_model).
    """
    xp = checks.floating(x=x, W1=W1)
    checks.shape("x", x, ("batch", "length", W1.shape[0]))
    batch, length, d = x.shape
    check_columns(length, W2)
    n_heads = len(W2)
    sizes = batch, n_heads, length, d // n_heads
    mask = padding_of(context, batch, length)
    rows = x.reshape(-1, d)
    W = xp.concatenate((W1, W_value), axis=1)
    hv = rows @ W
    bias_and_relu: dict[str, Any] = {"biases": (b1, b_value), "relu": True}
    (hidden, value, _), _ = rows_to_heads(hv, sizes, plain=(0, 1), mask=mask, **bias_and_relu)
    scores = hidden.reshape(n_heads, batch * length, -1) @ contiguous(W2[..., :length])
    weights = scores.reshape(n_heads * batch, length, length)
    softmax_of_scores(weights, batch, length, mask=mask, causal=causal, bias=b2)
    y = heads_to_rows((weights @ value,), sizes).reshape(x.shape)
    return y, (rows, W, bias_and_relu, hv, W2, weights, mask, sizes)


def dense_heads_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Replaces `functional.dense_synthesizer_backward` and `functional.linear_backward`.

    Gradients: dx, dW1, db1, dW2, db2, dW_value, db_value.
    """
    rows, W, bias_and_relu, hv, W2, weights, mask, sizes = cache
    xp = array_module(dy)
    batch, n_heads, length, d_head = sizes
    d = n_heads * d_head
    one_sequence = 1, n_heads, batch * length, d_head  # all sequences as a single one
    drows = contiguous(dy).reshape(-1, d)
    (hidden, *_), (hidden_T, *_) = rows_to_heads(
        hv, one_sequence, plain=(0,), transposed=(0,), **bias_and_relu
    )
    _, (_, value_T, _) = rows_to_heads(hv, sizes, transposed=(1,), mask=mask, **bias_and_relu)
    (dout, *_), (dout_T, *_) = rows_to_heads(drows, sizes, plain=(0,), transposed=(0,))
    dscores = dout @ value_T
    softmax_backward_in_place(weights, dscores)
    dvalue_T = dout_T @ weights
    # scores = hidden @ W2[..., :length] + b2
    by_head = dscores.reshape(n_heads, batch * length, length)
    dW2, db2 = xp.zeros_like(W2), xp.zeros((n_heads, W2.shape[-1]), dtype=W2.dtype)
    dW2[..., :length] = hidden_T @ by_head
    db2[:, :length] = column_sums(by_head)
    dhidden = by_head @ contiguous(W2[..., :length].swapaxes(-1, -2))
    # hidden = relu(...)
    c = Columns(dhidden.size // d_head, d_head)
    FEED_FORWARD.launch("relu_backward", c.grid, dhidden, hidden, None, *c.sizes)
    dhv = heads_to_rows((dhidden, dvalue_T), sizes, transposed=(1,))
    dW, db = rows.T @ dhv, column_sums(dhv)
    dx = (dhv @ W.T).reshape(dy.shape)
    return dx, dW[:, :d], db[:d], dW2, db2, dW[:, d:], db[d:]
