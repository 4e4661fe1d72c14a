"""Weighted averages of tokens: Y = softmax(S) V, for any scores S.

Attention and the synthesizers compute S in different ways, and share the rest.
"""

from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.functional.broadcasting import broadcast_shape, sum_to
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.softmax import softmax, softmax_backward
from npformer.functional.sums import lay_out


def average(
    scores: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    rate: float = 0.0,
    generator: Any = None,
    begin: int = 0,
    window: int | None = None,
) -> tuple[Array, Any]:
    """Y = softmax(S) V over the last axis of S; Y = dropout(softmax(S)) V with a rate.

    Parameters
    ----------
    scores : array, shape (..., query_length, key_length)
        Leading axes may be 1 or missing, to use the same scores for the whole batch.
    value : array, shape (..., key_length, d_value)
    mask : bool array, broadcastable to (..., query_length, key_length), optional
        True = keep.
    causal : bool
        Query i sees only keys 0 to begin + i.
    begin : int
        The position of the first query: 0 if queries and keys are of the same tokens, n if the keys
        of n earlier tokens were kept.
    window : int, optional
        Local attention (Beltagy et al., 2020, arXiv 2004.05150): a query sees the keys that are at
        most window // 2 tokens away or, with `causal`, the last `window` keys up to its own.
    rate, generator
        As in `dropout`, for the weights of each sample. Those kept are scaled, so a row still sums
        to 1 on average (Vaswani et al. drop what comes after; BERT and PyTorch do both).

    Returns
    -------
    y : array, shape (..., query_length, d_value)
        0 for a query that sees no key; its gradients are 0 too.
    """
    check_average(scores, value, mask)
    allowed = mask  # broadcasts with the scores, True = keep
    if causal is not False or window is not None:
        # The padding mask, the causal mask and the window as one.
        allowed = allowed_pairs(mask, causal, scores, scores.shape[-2:], begin, window)
    weights, softmax_cache = softmax(scores, mask=allowed)  # A [.., Lq, Lk]: each row sums to 1
    weights_shape = weights.shape  # before dropout, which may draw for each sample
    dropout_cache = None
    if rate != 0.0:
        if generator is not None:  # samples that share weights drop their own
            weights = repeat_for_samples(weights, value)
        weights, dropout_cache = dropout(weights, rate, generator)  # some become 0, the rest grow
    seeing = None  # which queries see a key; None: all
    value = lay_out(value)
    seen_value = value  # 0 where no query sees it
    if mask is not None:  # what no query sees may be NaN, and 0 * NaN is NaN
        seeing, visible_keys = visible(allowed)
        seen_value = zero_other_rows(visible_keys, value)
    y = weights @ seen_value  # [.., Lq, Lk], [.., Lk, dv] -> [.., Lq, dv]
    shapes = weights_shape, scores.shape, value.shape, y.shape  # to which gradients are summed
    return y, (weights, seen_value, seeing, dropout_cache, softmax_cache, shapes)


def average_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """dV = A^T dY and dA = dY V^T for the weights A = softmax(S); dS follows from dA.

    In Y_ic = sum_j A_ij V_jc, V_jc is in the output of every query i, and A_ij in every feature c
    of the output of query i: dV_jc = sum_i A_ij dY_ic, and dA_ij = sum_c dY_ic V_jc.

    Scores or values that were broadcast in the forward pass get the sum of their gradients.
    """
    weights, seen_value, seeing, dropout_cache, softmax_cache, shapes = cache
    weights_shape, scores_shape, value_shape, y_shape = shapes
    checks.gradient(dy, y_shape)
    dy = lay_out(dy)
    if seeing is not None:
        dy = zero_other_rows(seeing, dy)  # a query that sees nothing sends nothing back
    # y = weights @ seen_value
    dvalue = sum_to(weights.swapaxes(-1, -2) @ dy, value_shape)  # [.., Lk, dv]
    dweights = sum_to(dy @ seen_value.swapaxes(-1, -2), weights.shape)  # [.., Lq, Lk]
    if dropout_cache is not None:
        # weights = dropout(softmax(scores))
        dweights = dropout_backward(dweights, dropout_cache)
    dweights = sum_to(dweights, weights_shape)  # dA: samples that share weights add up
    # weights = softmax(scores)
    dscores = softmax_backward(dweights, softmax_cache)
    return sum_to(dscores, scores_shape), dvalue  # dS, dV


def averaging_weights(
    scores: Array,
    mask: Array | None = None,
    causal: bool = False,
    window: int | None = None,
) -> tuple[Array, Any]:
    """A = softmax(S), as in `average`: a row sums to 1, or is 0 if its query sees no key.

    `softmax_backward` is its backward pass.
    """
    checks.floating(scores=scores)
    checks.shape("scores", scores, (None, "query_length", "key_length"))
    if mask is not None:
        backend_of(scores=scores, mask=mask)
        # Scores that a whole batch uses have fewer axes than the mask.
        leading = broadcast_shape(scores.shape[:-2], mask.shape[:-2], reference=scores)
        expected = scores.shape if leading is None else (*leading, *scores.shape[-2:])
        check_mask(mask, expected, reference=scores)
    allowed = allowed_pairs(mask, causal, scores, scores.shape[-2:], window=window)
    return softmax(scores, mask=allowed)


def check_average(scores: Array, value: Array, mask: Array | None) -> None:
    """Check that there is a value for each column of scores, and that the mask fits them."""
    checks.floating(scores=scores, value=value)
    columns = scores.shape[:-2] + scores.shape[-1:]
    if mask is None and scores.ndim > 1 and value.shape[:-1] == columns:
        return  # the usual case
    checks.shape("scores", scores, (None, "query_length", "key_length"))
    by_column = None, scores.shape[-1], "d_value"
    checks.shape("value", value, by_column, "One value for each column of scores")
    leading = broadcast_shape(scores.shape[:-2], value.shape[:-2], reference=scores)
    if leading is None:
        raise ValueError(
            f"scores has shape {tuple(scores.shape)} and value has shape {tuple(value.shape)}; "
            "expected the same axes before the last two; an axis may be 1 or missing to broadcast"
        )
    if mask is not None:
        check_mask(mask, (*leading, *scores.shape[-2:]), reference=scores)


def allowed_pairs(
    mask: Array | None,
    causal: bool,
    like: Array,
    lengths: tuple[int, ...],
    begin: int = 0,
    window: int | None = None,
) -> Array | None:
    """Combine `mask` with the band of keys that queries reach; None lets each see every key.

    `lengths` are how many queries and keys there are.
    """
    behind, ahead = window_reach(causal, window)
    if behind is None and ahead is None:
        return mask
    begin = checks.whole("begin", begin, at_least=0)
    tri = array_module(like).tri
    band = None if ahead is None else tri(*lengths, begin + ahead, dtype=bool)
    if behind is not None:
        band = band & ~tri(*lengths, begin - behind - 1, dtype=bool)
    return band if mask is None else mask & band


def window_reach(causal: bool, window: int | None) -> tuple[int | None, int | None]:
    """Return how many tokens behind and ahead of its own a query sees; None: all."""
    checks.flag("causal", causal)
    if window is None:
        return None, 0 if causal else None
    window = checks.positive("window", window)
    return (window - 1, 0) if causal else (window // 2, window // 2)


def repeat_for_samples(weights: Array, value: Array) -> Array:
    """View weights that samples share as (..., Lq, Lk), with the leading axes of the values."""
    xp = array_module(weights)
    leading = xp.broadcast_shapes(weights.shape[:-2], value.shape[:-2])
    return xp.broadcast_to(weights, (*leading, *weights.shape[-2:]))


def visible(allowed: Array) -> tuple[Array, Array]:
    """Return which queries see a key, (..., Lq or 1, 1), and which keys are seen, (..., Lk, 1)."""
    allowed = array_module(allowed).atleast_2d(allowed)
    return allowed.any(axis=-1)[..., None], allowed.any(axis=-2)[..., None]


def zero_other_rows(rows: Array | None, x: Array) -> Array:
    """Return x with 0 in all rows but these; None means all."""
    return x if rows is None else array_module(x).where(rows, x, 0.0)


def check_mask(mask: Array, scores_shape: tuple[int, ...], reference: Array) -> None:
    """Check that a mask is boolean, on `reference`'s backend, and broadcasts to the scores."""
    backend_of(scores=reference, mask=mask)
    checks.boolean("mask", mask)
    if broadcast_shape(mask.shape, scores_shape, reference) != scores_shape:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; expected one that broadcasts to the scores, "
            f"{tuple(scores_shape)}. For a (batch, key_length) padding mask over heads write "
            "mask[:, None, None, :]"
        )
