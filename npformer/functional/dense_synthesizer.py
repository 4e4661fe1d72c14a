"""The Dense Synthesizer: each token determines its own row of weights.

Tay et al., 2020, arXiv 2005.00743, equations (1) to (3).
"""

import math
from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.activations import relu, relu_backward
from npformer.functional.averaging import average, average_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.linear import linear, linear_backward
from npformer.functional.sums import lay_out, sum_along


def dense_scores(
    x: Array, W1: Array, b1: Array, W2: Array, b2: Array, columns: int
) -> tuple[Array, Any]:
    """S = relu(X W1 + b1) W2 + b2: each token's row of scores depends on that token alone.

    Parameters
    ----------
    x : array, shape (batch, length, d_model), or (length, d_model) without heads
    W1 : array, shape (d_model, d_hidden)
        In the paper d_hidden = d_model. The first d_hidden / heads columns belong to the first
        head, and so on.
    b1 : array, shape (d_hidden,)
    W2 : array, shape (d_hidden, max_len), or (heads, d_hidden / heads, max_len)
    b2 : array, shape (max_len,), or (heads, max_len)
    columns : int
        How many of the max_len columns are used, from the first on.

    Returns
    -------
    scores : array, shape (batch, length, columns), or (batch, heads, length, columns)
    """
    checks.floating(x=x, W1=W1, b1=b1, W2=W2, b2=b2)
    heads = W2.shape[0] if W2.ndim == 3 else None
    checks.shape("x", x, (None, "length", "d_model"))
    checks.shape("W1", W1, (x.shape[-1], "d_hidden"), "Its rows are the features of x")
    checks.shape("b1", b1, W1.shape[1:], "One bias for each column of W1")
    if heads is None:
        checks.shape("W2", W2, (W1.shape[-1], "max_len"), "Its rows are W1's columns")
    else:
        checks.shape("x", x, ("batch", "length", "d_model"), "W2 has heads, so x needs a batch")
        checks.positive("the number of W2's heads", heads)
        checks.shape("W2", W2, (heads, W1.shape[-1] // heads, "max_len"), "W1's columns by head")
    checks.shape("b2", b2, (*W2.shape[:-2], W2.shape[-1]), "One bias for each column of W2")
    columns = check_columns(columns, W2)
    W2 = lay_out(W2)
    before, linear_cache = linear(x, W1, b1)  # [batch, length, d_hidden]
    hidden, relu_cache = relu(before)  # [batch, length, d_hidden]
    by_head = hidden if heads is None else split_heads(hidden, heads)  # [.., length, of a head]
    scores = by_head @ W2[..., :columns] + b2[..., None, :columns]  # [.., length, columns]
    return scores, (by_head, W2, b2, columns, linear_cache, relu_cache)


def dense_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array, Array, Array, Array]:
    """dx, dW1, db1, dW2, db2: back through a linear map, a ReLU and a linear map.

    S = h W2 + b2 with h = relu(p) and p = x W1 + b1. So dh = dS W2^T and dW2 = h^T dS, dp is dh
    where p > 0 and else 0, dx = dp W1^T and dW1 = x^T dp; db2 and db1 are the sums of the rows of
    dS and dp. Columns of W2 and b2 that were not used have gradient 0.
    """
    by_head, W2, b2, columns, linear_cache, relu_cache = cache
    checks.gradient(dscores, (*by_head.shape[:-1], columns), "dscores")
    xp = array_module(dscores)
    dscores = lay_out(dscores)

    # scores = by_head @ W2[..., :columns] + b2[..., None, :columns]
    dby_head = dscores @ W2[..., :columns].swapaxes(-1, -2)  # [.., length, of a head]
    dW2, db2 = xp.zeros_like(W2), xp.zeros_like(b2)
    if W2.ndim == 2:
        rows, drows = (
            by_head.reshape(-1, W2.shape[0]),
            dscores.reshape(math.prod(dscores.shape[:-1]), columns),
        )
        dW2[:, :columns] = rows.T @ drows  # [d_hidden, rows], [rows, columns]
        db2[:columns] = sum_along(drows, axis=0)  # columns that were not used keep 0
        dhidden = dby_head
    else:
        # The whole batch uses the same W2 and b2: sum over it.
        dW2[..., :columns] = sum_along(by_head.swapaxes(-1, -2) @ dscores, axis=0)
        db2[..., :columns] = sum_along(sum_along(dscores, axis=2), axis=0)
        dhidden = merge_heads(dby_head)  # [batch, length, d_hidden]
    # hidden = relu(before)
    dbefore = relu_backward(dhidden, relu_cache)
    # before = linear(x, W1, b1)
    dx, dW1, db1 = linear_backward(dbefore, linear_cache)
    return dx, dW1, db1, dW2, db2


def dense_synthesizer(
    x: Array,
    value: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> tuple[Array, Any]:
    """Y = softmax(relu(X W1 + b1) W2 + b2) V: the Dense Synthesizer.

    Parameters
    ----------
    x, W1, b1, W2, b2
        As in `dense_scores`. A sequence uses the first `length` columns.
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        G(X) in the paper: what is averaged. y has the same shape.
    mask, causal
        As in `average`.

    Notes
    -----
    The softmax runs over the last axis, that of the averaged tokens. With any other axis, rows of Y
    would not be averages.
    """
    checks.floating(x=x, value=value)
    checks.shape("x", x, (None, "length", "d_model"))
    # From one token alone: no query meets a key [batch, heads, length, length]
    scores, scores_cache = dense_scores(x, W1, b1, W2, b2, x.shape[-2])
    check_value(value, scores)
    y, average_cache = average(scores, value, mask, causal)  # softmax(S) V, as in attention
    return y, (scores_cache, average_cache)


def dense_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """dx, dvalue, dW1, db1, dW2, db2: back through the average, then through the scores."""
    scores_cache, average_cache = cache
    # y = average(scores, value)
    dscores, dvalue = average_backward(dy, average_cache)
    # scores = dense_scores(x, W1, b1, W2, b2)
    dx, *dmaps = dense_scores_backward(dscores, scores_cache)
    return dx, dvalue, *dmaps  # dmaps: dW1, db1, dW2, db2


def check_value(value: Array, scores: Array) -> None:
    """Check that there is one value for each token."""
    by_token = *scores.shape[:-1], "d_value"
    checks.shape("value", value, by_token, "One value for each token of x (and head)")


def check_columns(columns: int, W2: Array) -> int:
    """Return the number of columns after checking that W2 has one for each token."""
    columns = checks.whole("columns", columns, at_least=0)
    if columns > W2.shape[-1]:
        raise ValueError(
            f"x has length {columns}; expected at most {W2.shape[-1]}, the length that W2 was made "
            "for. Truncate the sequence, or build the synthesizer with a larger max_len"
        )
    return columns
