"""Synthetic attention: weights without comparing tokens (Tay et al., 2020, arXiv 2005.00743)."""

from __future__ import annotations

from typing import Any

from npformer import checks
from npformer.backend import Array, array_module
from npformer.functional.activations import relu, relu_backward
from npformer.functional.attention import (
    allowed_pairs,
    check_pairs_mask,
    merge_heads,
    split_heads,
)
from npformer.functional.linear import linear, linear_backward
from npformer.functional.softmax import softmax, softmax_backward


def dense_synthesizer_weights(
    x: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> tuple[Array, Any]:
    """Weights = softmax(relu(X W1 + b1) W2 + b2): each token writes its own row of weights.

    Parameters
    ----------
    x : array, shape (batch, length, d_model), or (length, d_model) with a single map
        Tokens.
    W1 : array, shape (d_model, d_hidden)
        In the paper d_hidden = d_model. With heads, the columns are theirs in turn.
    b1 : array, shape (d_hidden,)
    W2 : array, shape (d_hidden, max_len), or (heads, d_hidden / heads, max_len)
        A single map, or one for each head.
    b2 : array, shape (max_len,), or (heads, max_len)
        W2 and b2 are made for the longest sequence; a shorter one uses their first columns.
    mask : bool array, broadcastable to the weights, optional
        True = keep.
    causal : bool
        Token i sees the tokens 0 to i only.

    Returns
    -------
    weights : array, shape (batch, length, length), or (batch, heads, length, length)
        Rows sum to 1; a row with nothing to keep is 0.
    cache : opaque
        For `dense_synthesizer_weights_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than max_len.

    Notes
    -----
    Equation (1) of the paper, B_i = F(X_i) with F(X) = W2 relu(W1 X + b1) + b2. F sees one token at
    a time, so a whole batch is two matrix products: there is nothing to loop over.
    """
    checks.floating(x=x, W1=W1, b1=b1, W2=W2, b2=b2)
    heads = W2.shape[0] if W2.ndim == 3 else None
    checks.shape("x", x, (None, "length", "d_model"))
    if heads is None:
        checks.shape("W2", W2, (W1.shape[-1], "max_len"), "Its rows are W1's columns")
    else:
        checks.shape("x", x, ("batch", "length", "d_model"), "W2 has heads, so x needs a batch")
        checks.shape("W2", W2, (heads, W1.shape[-1] // heads, "max_len"), "W1's columns by head")
    checks.shape("b2", b2, (*W2.shape[:-2], W2.shape[-1]), "One bias for each column of W2")
    length, max_len = x.shape[-2], W2.shape[-1]
    if length > max_len:
        raise ValueError(
            f"x has length {length}; expected at most {max_len}, the length that W2 was made for. "
            "Cut the sequence, or build the synthesizer with a larger max_len"
        )
    batch_axes = (*x.shape[:-2], *(() if heads is None else (heads,)))
    check_pairs_mask(mask, (*batch_axes, length, length), x=x)
    allowed = allowed_pairs(mask, causal, length, length, near=x)

    before, linear_cache = linear(x, W1, b1)  # [batch, length, d_hidden]
    hidden, relu_cache = relu(before)
    by_head = hidden if heads is None else split_heads(hidden, heads)  # [.., length, d_hidden]
    scores = by_head @ W2[..., :length] + b2[..., None, :length]  # [.., length, length]
    weights, softmax_cache = softmax(scores, mask=allowed)
    return weights, (by_head, W2, b2, linear_cache, relu_cache, softmax_cache)


def dense_synthesizer_weights_backward(
    dweights: Array, cache: Any
) -> tuple[Array, Array, Array, Array, Array]:
    """Gradients of `dense_synthesizer_weights`.

    Parameters
    ----------
    dweights : array, shape of the weights
        Gradient of the loss with respect to the weights.
    cache : opaque
        From `dense_synthesizer_weights`.

    Returns
    -------
    dx, dW1, db1, dW2, db2 : array
        Columns of W2 and b2 beyond the sequence's length were not used: their gradient is 0.
    """
    by_head, W2, b2, linear_cache, relu_cache, softmax_cache = cache
    xp = array_module(dweights)
    heads = W2.shape[0] if W2.ndim == 3 else None
    length = by_head.shape[-2]

    # weights = softmax(scores)
    dscores = softmax_backward(dweights, softmax_cache)  # [.., length, length]
    # scores = by_head @ W2[..., :length] + b2[..., None, :length]
    dby_head = dscores @ W2[..., :length].swapaxes(-1, -2)  # [.., length, d_hidden]
    dW2, db2 = xp.zeros_like(W2), xp.zeros_like(b2)
    if heads is None:
        rows, drows = by_head.reshape(-1, W2.shape[0]), dscores.reshape(-1, length)
        dW2[:, :length] = rows.T @ drows  # [d_hidden, rows], [rows, length]
        db2[:length] = drows.sum(axis=0)
        dhidden = dby_head
    else:
        # The weights of a head are shared by the batch: sum over it.
        dW2[..., :length] = (by_head.swapaxes(-1, -2) @ dscores).sum(axis=0)
        db2[..., :length] = dscores.sum(axis=(0, 2))
        dhidden = merge_heads(dby_head)
    # hidden = relu(linear(x))
    dbefore = relu_backward(dhidden, relu_cache)
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
    x : array, shape (batch, length, d_model), or (length, d_model) with a single map
        Tokens.
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        G(X) in the paper: what is averaged.
    W1, b1, W2, b2 : array
        As in `dense_synthesizer_weights`; the paper has W1 (d_model, d_model) and W2
        (d_model, max_len).
    mask : bool array, broadcastable to (batch, [heads,] length, length), optional
        True = keep.
    causal : bool
        Token i sees the tokens 0 to i only.

    Returns
    -------
    y : array, shape of value
    cache : opaque
        For `dense_synthesizer_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than max_len.

    Notes
    -----
    Equation (3) of the paper, Y = softmax(B) G(X). The softmax runs over the last axis, the tokens
    that are averaged; over any other, rows of Y stop being averages.
    """
    checks.floating(x=x, value=value)
    weights, weights_cache = dense_synthesizer_weights(x, W1, b1, W2, b2, mask, causal)
    checks.shape(
        "value", value, (*weights.shape[:-1], "d_value"), "One value for each token of x (and head)"
    )
    y = weights @ value  # [.., length, length], [.., length, d_value] -> [.., length, d_value]
    return y, (weights, value, weights_cache)


def dense_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of `dense_synthesizer`.

    Parameters
    ----------
    dy : array, shape of value
        Gradient of the loss with respect to y.
    cache : opaque
        From `dense_synthesizer`.

    Returns
    -------
    dx, dvalue, dW1, db1, dW2, db2 : array
    """
    weights, value, weights_cache = cache
    # y = weights @ value
    dvalue = weights.swapaxes(-1, -2) @ dy
    dweights = dy @ value.swapaxes(-1, -2)
    dx, dW1, db1, dW2, db2 = dense_synthesizer_weights_backward(dweights, weights_cache)
    return dx, dvalue, dW1, db1, dW2, db2
