"""Linear map: y = x W + b, the same for every position."""

import math
from typing import Any

from npformer.core import Array, checks
from npformer.functional.sums import lay_out, sum_along


def linear(x: Array, W: Array, b: Array | None = None) -> tuple[Array, Any]:
    """y_j = sum_i x_i W_ij + b_j for each row of x.

    Parameters
    ----------
    x : array, shape (..., d_in)
    W : array, shape (d_in, d_out)
    b : array, shape (d_out,), optional

    Returns
    -------
    y : array, shape (..., d_out)
    """
    check_linear(x, W, b)
    # One matrix product, which a BLAS runs faster than a stack of small ones.
    rows = lay_out(x.reshape(math.prod(x.shape[:-1]), W.shape[0]))  # [..., d_in] -> [rows, d_in]
    W = lay_out(W)
    y = rows @ W  # [rows, d_in], [d_in, d_out] -> [rows, d_out]
    if b is not None:
        y += b  # [d_out]: the same for each row
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape)


def linear_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """dx = dy W^T, dW = x^T dy and, if there was a bias, db = the sum of dy's rows.

    y_j contains x_i W_ij: its derivative is W_ij by x_i, and x_i by W_ij. Every y_j of a row uses
    x_i, so dx_i = sum_j dy_j W_ij. Every row uses the same W and b, so dW_ij is the sum of x_i dy_j
    over all rows, and db_j is the sum of dy_j.
    """
    rows, W, has_bias, x_shape = cache
    checks.gradient(dy, (*x_shape[:-1], W.shape[1]))
    drows = lay_out(dy.reshape(len(rows), W.shape[1]))  # [rows, d_out]

    # y = rows @ W
    dx = (drows @ W.T).reshape(x_shape)  # [rows, d_out], [d_out, d_in] -> [rows, d_in]
    dW = rows.T @ drows  # [d_in, rows], [rows, d_out] -> [d_in, d_out]
    if not has_bias:
        return dx, dW
    # y += b
    return dx, dW, sum_along(drows, axis=0)


def check_linear(x: Array, W: Array, b: Array | None) -> None:
    """Check that a linear map fits its input."""
    checks.floating(x=x, W=W, b=W if b is None else b)
    if W.ndim != 2 or x.shape[-1:] != W.shape[:-1] or (b is not None and b.shape != W.shape[1:]):
        checks.shape("W", W, ("d_in", "d_out"))
        checks.shape("x", x, (None, W.shape[0]), "Its last axis must be the first of W")
        if b is not None:
            checks.shape("b", b, (W.shape[1],), "One bias for each column of W")
