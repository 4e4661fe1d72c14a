"""The Dense Synthesizer, whole and factorized: each token writes its own row of weights.

Tay et al., 2020, arXiv 2005.00743, equations (1) to (3) and section 3.1.
"""

from __future__ import annotations

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.activations import relu, relu_backward
from npformer.functional.averaging import average, average_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.linear import linear, linear_backward


def dense_scores(
    x: Array, W1: Array, b1: Array, W2: Array, b2: Array, columns: int
) -> tuple[Array, Any]:
    """S = relu(X W1 + b1) W2 + b2: the scores of each token from that token alone.

    Parameters
    ----------
    x : array, shape (batch, length, d_model), or (length, d_model) with a single map
        Tokens.
    W1 : array, shape (d_model, d_hidden)
        In the paper d_hidden = d_model. With heads, the columns are theirs in turn.
    b1 : array, shape (d_hidden,)
    W2 : array, shape (d_hidden, n), or (heads, d_hidden / heads, n)
        A single map, or one for each head.
    b2 : array, shape (n,), or (heads, n)
    columns : int
        How many of the n columns are used, from the first.

    Returns
    -------
    scores : array, shape (batch, length, columns), or (batch, heads, length, columns)
    cache : opaque
        For `dense_scores_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or there are fewer columns than asked for.

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
    check_columns(columns, W2)
    before, linear_cache = linear(x, W1, b1)  # [batch, length, d_hidden]
    hidden, relu_cache = relu(before)
    by_head = hidden if heads is None else split_heads(hidden, heads)  # [.., length, of a head]
    scores = by_head @ W2[..., :columns] + b2[..., None, :columns]  # [.., length, columns]
    return scores, (by_head, W2, b2, linear_cache, relu_cache)


def dense_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array, Array, Array, Array]:
    """Gradients of `dense_scores`.

    Parameters
    ----------
    dscores : array, shape of the scores
        Gradient of the loss with respect to the scores.
    cache : opaque
        From `dense_scores`.

    Returns
    -------
    dx, dW1, db1, dW2, db2 : array
        Columns of W2 and b2 that were not used have gradient 0.
    """
    by_head, W2, b2, linear_cache, relu_cache = cache
    xp = array_module(dscores)
    columns = dscores.shape[-1]

    # scores = by_head @ W2[..., :columns] + b2[..., None, :columns]
    dby_head = dscores @ W2[..., :columns].swapaxes(-1, -2)  # [.., length, of a head]
    dW2, db2 = xp.zeros_like(W2), xp.zeros_like(b2)
    if W2.ndim == 2:
        rows, drows = by_head.reshape(-1, W2.shape[0]), dscores.reshape(-1, columns)
        dW2[:, :columns] = rows.T @ drows  # [d_hidden, rows], [rows, columns]
        db2[:columns] = drows.sum(axis=0)
        dhidden = dby_head
    else:
        # The map of a head is shared by the batch: sum over it.
        dW2[..., :columns] = (by_head.swapaxes(-1, -2) @ dscores).sum(axis=0)
        db2[..., :columns] = dscores.sum(axis=(0, 2))
        dhidden = merge_heads(dby_head)
    # hidden = relu(linear(x))
    dbefore = relu_backward(dhidden, relu_cache)
    dx, dW1, db1 = linear_backward(dbefore, linear_cache)
    return dx, dW1, db1, dW2, db2


def factorized_dense_scores(
    x: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    V1: Array,
    c1: Array,
    V2: Array,
    c2: Array,
    columns: int,
) -> tuple[Array, Any]:
    """S_i = F(X_i) tiled times G(X_i) repeated: max_len scores from two short rows.

    Parameters
    ----------
    x : array, shape (batch, length, d_model), or (length, d_model) with single maps
        Tokens.
    W1, b1, W2, b2 : array
        F, as in `dense_scores`, with a columns.
    V1, c1, V2, c2 : array
        G, alike, with b columns; a b is at least the longest length.
    columns : int
        How many of the a b scores are used, from the first.

    Returns
    -------
    scores : array, shape (batch, length, columns), or (batch, heads, length, columns)
    cache : opaque
        For `factorized_dense_scores_backward`.

    Notes
    -----
    The paper tiles F(X_i) b times, repeats each entry of G(X_i) a times, and multiplies. Score j is
    then F_(j mod a) G_(j div a): the outer product of the two, read row by row.
    """
    short, short_cache = dense_scores(x, W1, b1, W2, b2, W2.shape[-1])  # [.., length, a]
    long, long_cache = dense_scores(x, V1, c1, V2, c2, V2.shape[-1])  # [.., length, b]
    if columns > short.shape[-1] * long.shape[-1]:
        raise ValueError(
            f"x has length {columns}; expected at most {short.shape[-1] * long.shape[-1]}, the "
            f"product of W2's {short.shape[-1]} and V2's {long.shape[-1]} columns. Cut the "
            "sequence, or build the synthesizer with a larger max_len"
        )
    outer = long[..., :, None] * short[..., None, :]  # [.., length, b, a]
    both = long.shape[-1] * short.shape[-1]
    scores = outer.reshape(*outer.shape[:-2], both)[..., :columns]
    return scores, (short, long, short_cache, long_cache)


def factorized_dense_scores_backward(dscores: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of `factorized_dense_scores`.

    Parameters
    ----------
    dscores : array, shape of the scores
        Gradient of the loss with respect to the scores.
    cache : opaque
        From `factorized_dense_scores`.

    Returns
    -------
    dx, dW1, db1, dW2, db2, dV1, dc1, dV2, dc2 : array
    """
    short, long, short_cache, long_cache = cache
    a, b = short.shape[-1], long.shape[-1]
    whole = array_module(dscores).zeros((*dscores.shape[:-1], b * a), dtype=dscores.dtype)
    # scores = outer, flattened, [..., :columns]
    whole[..., : dscores.shape[-1]] = dscores
    douter = whole.reshape(*whole.shape[:-1], b, a)
    # outer = long[..., :, None] * short[..., None, :]
    dshort = (douter * long[..., :, None]).sum(axis=-2)
    dlong = (douter * short[..., None, :]).sum(axis=-1)
    dx_long, dV1, dc1, dV2, dc2 = dense_scores_backward(dlong, long_cache)
    dx_short, dW1, db1, dW2, db2 = dense_scores_backward(dshort, short_cache)
    return dx_short + dx_long, dW1, db1, dW2, db2, dV1, dc1, dV2, dc2


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
        As in `dense_scores`, with max_len columns; a shorter sequence uses the first ones. The
        paper has W1 (d_model, d_model) and W2 (d_model, max_len).
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
    checks.shape("x", x, (None, "length", "d_model"))
    scores, scores_cache = dense_scores(x, W1, b1, W2, b2, x.shape[-2])
    _check_value(value, scores)
    y, average_cache = average(scores, value, mask, causal)
    return y, (scores_cache, average_cache)


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
    scores_cache, average_cache = cache
    dscores, dvalue = average_backward(dy, average_cache)
    dx, dW1, db1, dW2, db2 = dense_scores_backward(dscores, scores_cache)
    return dx, dvalue, dW1, db1, dW2, db2


def factorized_dense_synthesizer(
    x: Array,
    value: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    V1: Array,
    c1: Array,
    V2: Array,
    c2: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> tuple[Array, Any]:
    """Y = softmax(tiled F(X) * repeated G(X)) V: the Factorized Dense Synthesizer.

    Parameters
    ----------
    x : array, shape (batch, length, d_model), or (length, d_model) with single maps
        Tokens.
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        What is averaged.
    W1, b1, W2, b2, V1, c1, V2, c2 : array
        The maps F and G, as in `factorized_dense_scores`.
    mask : bool array, broadcastable to (batch, [heads,] length, length), optional
        True = keep.
    causal : bool
        Token i sees the tokens 0 to i only.

    Returns
    -------
    y : array, shape of value
    cache : opaque
        For `factorized_dense_synthesizer_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than the product of W2's and V2's columns.
    """
    checks.floating(x=x, value=value)
    checks.shape("x", x, (None, "length", "d_model"))
    scores, scores_cache = factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, x.shape[-2])
    _check_value(value, scores)
    y, average_cache = average(scores, value, mask, causal)
    return y, (scores_cache, average_cache)


def factorized_dense_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of `factorized_dense_synthesizer`.

    Parameters
    ----------
    dy : array, shape of value
        Gradient of the loss with respect to y.
    cache : opaque
        From `factorized_dense_synthesizer`.

    Returns
    -------
    dx, dvalue, dW1, db1, dW2, db2, dV1, dc1, dV2, dc2 : array
    """
    scores_cache, average_cache = cache
    dscores, dvalue = average_backward(dy, average_cache)
    dx, *dmaps = factorized_dense_scores_backward(dscores, scores_cache)
    return dx, dvalue, *dmaps


def _check_value(value: Array, scores: Array) -> None:
    checks.shape(
        "value", value, (*scores.shape[:-1], "d_value"), "One value for each token of x (and head)"
    )


def check_columns(columns: int, W2: Array) -> None:
    """Check that W2 has a column for each token."""
    if columns > W2.shape[-1]:
        raise ValueError(
            f"x has length {columns}; expected at most {W2.shape[-1]}, the length that W2 was made "
            "for. Cut the sequence, or build the synthesizer with a larger max_len"
        )
