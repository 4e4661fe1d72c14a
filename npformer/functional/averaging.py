"""Tokens averaged by weights: Y = softmax(S) V, wherever the scores S come from.

Attention compares tokens to make S, synthesizers do not. What follows is the same for all of them.
"""

from __future__ import annotations

from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.functional.broadcasting import broadcast_shape, sum_to
from npformer.functional.softmax import softmax, softmax_backward


def average(
    scores: Array, value: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Y = softmax(S) V over the last axis of S.

    Parameters
    ----------
    scores : array, shape (..., query_length, key_length)
        Its leading axes may be 1 or missing: one table of scores for the whole batch.
    value : array, shape (..., key_length, d_value)
    mask : bool array, broadcastable to (..., query_length, key_length), optional
        True = keep.
    causal : bool
        Query i sees the keys 0 to i only.

    Returns
    -------
    y : array, shape (..., query_length, d_value)
        A query with nothing to see gives 0, and so do its gradients.
    cache : opaque
        For `average_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit.
    """
    checks.floating(scores=scores, value=value)
    checks.shape("scores", scores, (None, "query_length", "key_length"))
    by_column = None, scores.shape[-1], "d_value"
    checks.shape("value", value, by_column, "One value for each column of scores")
    leading = broadcast_shape(scores.shape[:-2], value.shape[:-2])
    if leading is None:
        raise ValueError(
            f"scores has shape {tuple(scores.shape)} and value has shape {tuple(value.shape)}; "
            "expected the same axes before the last two, or 1 or none where one serves all"
        )
    if mask is not None:
        check_mask(mask, (*leading, *scores.shape[-2:]), near=scores)
    weights, softmax_cache = _weights(scores, mask, causal)
    y = weights @ value  # [.., Lq, Lk], [.., Lk, dv] -> [.., Lq, dv]
    return y, (weights, value, softmax_cache, scores.shape)


def average_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `average`.

    Parameters
    ----------
    dy : array, shape (..., query_length, d_value)
        Gradient of the loss with respect to y.
    cache : opaque
        From `average`.

    Returns
    -------
    dscores, dvalue : array
        In the shapes of scores and value: what was shared by a batch is summed over it.
    """
    weights, value, softmax_cache, scores_shape = cache
    # y = weights @ value
    dvalue = sum_to(weights.swapaxes(-1, -2) @ dy, value.shape)  # [.., Lk, dv]
    dweights = sum_to(dy @ value.swapaxes(-1, -2), weights.shape)  # [.., Lq, Lk]
    # weights = softmax(scores)
    dscores = softmax_backward(dweights, softmax_cache)
    return sum_to(dscores, scores_shape), dvalue


def averaging_weights(
    scores: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Weights = softmax(S), 0 where the mask or the causal triangle forbids.

    Parameters
    ----------
    scores, mask, causal
        As in `average`.

    Returns
    -------
    weights : array, shape (..., query_length, key_length)
        Rows sum to 1; a query with nothing to see has a row of 0.
    cache : opaque
        For `softmax_backward`.
    """
    checks.floating(scores=scores)
    checks.shape("scores", scores, (None, "query_length", "key_length"))
    if mask is not None:
        backend_of(scores=scores, mask=mask)
        # Scores that a batch shares have fewer axes than the batch's mask.
        leading = broadcast_shape(scores.shape[:-2], mask.shape[:-2]) or scores.shape[:-2]
        check_mask(mask, (*leading, *scores.shape[-2:]), near=scores)
    return _weights(scores, mask, causal)


def _weights(scores: Array, mask: Array | None, causal: bool) -> tuple[Array, Any]:
    return softmax(scores, mask=allowed_pairs(mask, causal, scores))


def allowed_pairs(mask: Array | None, causal: bool, scores: Array) -> Array | None:
    """Return which query may see which key: `mask` and the causal triangle; None for all.

    Parameters
    ----------
    mask : bool array, broadcastable to (..., query_length, key_length), or None
        True = keep.
    causal : bool
        Query i sees the keys 0 to i.
    scores : array, shape (..., query_length, key_length)
        Gives the size of the triangle, and its backend.
    """
    if not causal:
        return mask
    xp = array_module(scores)
    triangle = xp.tril(xp.ones(scores.shape[-2:], dtype=bool))
    return triangle if mask is None else mask & triangle


def check_mask(mask: Array, scores_shape: tuple[int, ...], near: Array) -> None:
    """Check that a mask is boolean, on `near`'s backend, and fits scores of a shape.

    Parameters
    ----------
    mask : bool array
    scores_shape : tuple of int
        (..., query_length, key_length).
    near : array
        Any of the arrays that it masks.

    Raises
    ------
    TypeError
        The mask is no array, not boolean, or of another backend.
    ValueError
        It does not broadcast to that shape.
    """
    backend_of(scores=near, mask=mask)
    checks.boolean("mask", mask)
    if broadcast_shape(mask.shape, scores_shape) != scores_shape:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; expected one that broadcasts to the scores, "
            f"{tuple(scores_shape)}. For a (batch, key_length) padding mask over heads write "
            "mask[:, None, None, :]"
        )
