"""Linear map: y = x W + b, the same for every position."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, checks


def linear(x: Array, W: Array, b: Array | None = None) -> tuple[Array, Any]:
    """y = x W + b.

    Parameters
    ----------
    x : array, shape (..., d_in)
        Any number of leading axes.
    W : array, shape (d_in, d_out)
        Weights.
    b : array, shape (d_out,), optional
        Bias.

    Returns
    -------
    y : array, shape (..., d_out)
    cache : opaque
        For `linear_backward`.

    Raises
    ------
    TypeError
        Dtypes or backends differ.
    ValueError
        The last axis of `x` is not W's first.

    Notes
    -----
    One row: y_j = sum_i x_i W_ij + b_j. With the leading axes folded into rows it is one matrix
    product, which a BLAS runs faster than a stack of small ones.
    """
    check_linear(x, W, b)
    rows = x.reshape(-1, W.shape[0])  # [..., d_in] -> [rows, d_in]
    y = rows @ W  # [rows, d_in], [d_in, d_out] -> [rows, d_out]
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (rows, W, b is not None, x.shape)


def linear_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of `linear`.

    Parameters
    ----------
    dy : array, shape (..., d_out)
        Gradient of the loss with respect to y.
    cache : opaque
        From `linear`.

    Returns
    -------
    dx : array, shape (..., d_in)
    dW : array, shape (d_in, d_out)
    db : array, shape (d_out,)
        Only if the forward pass had a bias.

    Notes
    -----
    dL/dx_i = sum_j dL/dy_j W_ij, and W_ij is used once by every row: its gradient is the sum over
    rows of x_i dL/dy_j.
    """
    rows, W, has_bias, x_shape = cache
    drows = dy.reshape(-1, W.shape[1])  # [rows, d_out]

    # y = rows @ W + b
    dx = (drows @ W.T).reshape(x_shape)  # [rows, d_out], [d_out, d_in] -> [rows, d_in]
    dW = rows.T @ drows  # [d_in, rows], [rows, d_out] -> [d_in, d_out]
    if not has_bias:
        return dx, dW
    return dx, dW, drows.sum(axis=0)


def check_linear(x: Array, W: Array, b: Array | None) -> None:
    """Check that a linear map fits what it is given."""
    checks.floating(x=x, W=W, b=b)
    if x.shape[-1:] != W.shape[:-1] or (b is not None and b.shape != W.shape[1:]):
        checks.shape("W", W, ("d_in", "d_out"))
        checks.shape("x", x, (None, W.shape[0]), "Its last axis must be the first of W")
        if b is not None:
            checks.shape("b", b, (W.shape[1],), "One bias for each column of W")
