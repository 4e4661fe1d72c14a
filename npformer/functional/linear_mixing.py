"""Mixing tokens with two matrices, one over the sequence and one over the features.

The "Linear" encoder of Lee-Thorp et al., 2021, arXiv 2105.03824, section 3.3; with matrices that
are drawn once and left alone, their "Random" encoder.
"""

from __future__ import annotations

from typing import Any

from npformer.core import Array, array_module, checks


def linear_mixing(x: Array, W_sequence: Array, W_features: Array) -> tuple[Array, Any]:
    """y = W_sequence x W_features.

    Parameters
    ----------
    x : array, shape (batch, length, d_model)
    W_sequence : array, shape (max_len, max_len)
        Row t says how much output t takes from each token. A shorter sequence uses its first rows
        and columns.
    W_features : array, shape (d_model, d_model)

    Returns
    -------
    y : array, same shape as x
    cache : opaque
        For `linear_mixing_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than max_len.
    """
    checks.floating(x=x, W_sequence=W_sequence, W_features=W_features)
    checks.shape("x", x, ("batch", "length", "d_model"))
    _, length, d_model = x.shape
    checks.shape("W_sequence", W_sequence, ("max_len", "max_len"))
    checks.shape("W_sequence", W_sequence, W_sequence.shape[:1] * 2, "It is square")
    checks.shape("W_features", W_features, (d_model, d_model), "x's features on both sides")
    if length > W_sequence.shape[0]:
        raise ValueError(
            f"x has length {length}; expected at most {W_sequence.shape[0]}, the length that "
            "W_sequence was made for. Cut the sequence, or build it with a larger max_len"
        )
    cropped = W_sequence[:length, :length]
    mixed = cropped @ x  # [length, length], [batch, length, d_model]
    y = (mixed.reshape(-1, d_model) @ W_features).reshape(x.shape)
    return y, (x, mixed, cropped, W_features, W_sequence.shape)


def linear_mixing_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradients of `linear_mixing`.

    Parameters
    ----------
    dy : array, shape (batch, length, d_model)
        Gradient of the loss with respect to y.
    cache : opaque
        From `linear_mixing`.

    Returns
    -------
    dx, dW_sequence, dW_features : array
        Rows and columns of W_sequence that were not used have gradient 0.
    """
    x, mixed, cropped, W_features, table_shape = cache
    length, d_model = x.shape[1:]
    drows = dy.reshape(-1, d_model)
    # y = mixed @ W_features
    dW_features = mixed.reshape(-1, d_model).T @ drows
    dmixed = (drows @ W_features.T).reshape(x.shape)
    # mixed = cropped @ x, the same matrix for the whole batch
    dW_sequence = array_module(dy).zeros(table_shape, dtype=dy.dtype)
    dW_sequence[:length, :length] = (dmixed @ x.swapaxes(-1, -2)).sum(axis=0)
    return cropped.T @ dmixed, dW_sequence, dW_features
