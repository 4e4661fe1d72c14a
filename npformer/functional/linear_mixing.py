"""Mixing tokens with two matrices, one over the sequence and one over the features.

The "Linear" encoder of Lee-Thorp et al., 2021, arXiv 2105.03824, section 3.3, or their "Random"
encoder if the matrices are random and never trained.
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.sums import lay_out, sum_along


def linear_mixing(x: Array, W_sequence: Array, W_features: Array) -> tuple[Array, Any]:
    """y = W_sequence x W_features.

    Parameters
    ----------
    x : array, shape (batch, length, d_model)
    W_sequence : array, shape (max_len, max_len)
        Row t holds the weights of all tokens in output t. A sequence uses the first `length` rows
        and columns.
    W_features : array, shape (d_model, d_model)
    """
    checks.floating(x=x, W_sequence=W_sequence, W_features=W_features)
    checks.shape("x", x, ("batch", "length", "d_model"))
    _, length, d_model = x.shape
    checks.shape("W_sequence", W_sequence, ("max_len", "max_len"))
    checks.shape("W_sequence", W_sequence, W_sequence.shape[:1] * 2, "It is square")
    checks.shape("W_features", W_features, (d_model, d_model), "x's features on both sides")
    checks.filled("W_features", W_features, "A token has features")
    if length > W_sequence.shape[0]:
        raise ValueError(
            f"x has length {length}; expected at most {W_sequence.shape[0]}, the length that "
            "W_sequence was made for. Truncate the sequence, or build it with a larger max_len"
        )
    x, W_features = lay_out(x), lay_out(W_features)
    cropped = lay_out(W_sequence[:length, :length])  # a shorter sequence uses the corner
    mixed = cropped @ x  # [length, length], [batch, length, d_model]
    # then the features of each token
    y = (mixed.reshape(-1, d_model) @ W_features).reshape(x.shape)
    return y, (x, mixed, cropped, W_features, W_sequence.shape)


def linear_mixing_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """dx, dW_sequence, dW_features: back through two matrix products, as in `linear_backward`.

    y = m W_features with m = W_sequence x. So dW_features = m^T dy and dm = dy W_features^T. In
    m_tj = sum_u W_tu x_uj, W_tu is in row t of m and x_uj in column j: dW_sequence = dm x^T and
    dx = W_sequence^T dm.

    The whole batch shares W_sequence, so its gradient is a sum; unused rows and columns get 0.
    """
    x, mixed, cropped, W_features, table_shape = cache
    length, d_model = x.shape[1:]
    checks.gradient(dy, x.shape)
    drows = lay_out(dy.reshape(-1, d_model))  # [batch * length, d_model]
    # y = mixed @ W_features
    dW_features = mixed.reshape(-1, d_model).T @ drows
    dmixed = (drows @ W_features.T).reshape(x.shape)  # [batch, length, d_model]
    # mixed = cropped @ x, the same matrix for the whole batch
    dW_sequence = array_module(dy).zeros(table_shape, dtype=dy.dtype)
    dW_sequence[:length, :length] = sum_along(dmixed @ x.swapaxes(-1, -2), axis=0)
    return cropped.T @ dmixed, dW_sequence, dW_features
