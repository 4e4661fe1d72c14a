"""From a sequence to one vector: the mean of its tokens, or the largest value of each feature."""

from typing import Any

from npformer.core import Array, checks
from npformer.core.padding import check_padding
from npformer.functional.averaging import zero_other_rows
from npformer.functional.sums import mean_along, sum_along


def mean_pooling(x: Array, mask: Array | None = None) -> tuple[Array, Any]:
    """y = the mean of the tokens that the mask keeps; 0 for a sequence without any.

    Parameters
    ----------
    x : array, shape (batch, length, d_model)
    mask : bool array, shape (batch, length), optional
        True = keep.

    Returns
    -------
    y : array, shape (batch, d_model)
    """
    xp = checks.sequences(x)
    checks.has_tokens("x", x)
    if mask is None:
        # over the tokens [batch, d_model]
        return mean_along(x, axis=1), (1.0 / x.shape[1], None, x.shape)
    check_padding(mask, x)
    count = xp.maximum(mask.sum(axis=1, keepdims=True), 1).astype(x.dtype)  # [batch, 1]
    kept_tokens = xp.where(mask[..., None], x, 0.0)  # not x * mask: padding may hold anything
    return sum_along(kept_tokens, axis=1) / count, (1.0 / count, mask, x.shape)


def mean_pooling_backward(dy: Array, cache: Any) -> Array:
    """dx = dy / count for each kept token, and 0 for padding.

    y = (x_1 + ... + x_count) / count has the derivative 1 / count by each kept x_t, feature by
    feature; the count depends on the mask alone. Padding does not occur in y.
    """
    share, mask, (batch, length, d_model) = cache
    xp = checks.gradient(dy, (batch, d_model))
    # y = sum over kept tokens of x / count
    dkept = (dy * share)[:, None, :]  # [batch, 1, d_model]
    if mask is None:
        return xp.repeat(dkept, length, axis=1)  # each token has the same part in the mean
    return xp.where(mask[..., None], dkept, 0.0)  # padding had no part in it


def max_pooling(x: Array, mask: Array | None = None) -> tuple[Array, Any]:
    """y = the largest value of each feature among the tokens that the mask keeps.

    `x`, `mask` and `y` are as in `mean_pooling`; NaN in a kept token is the largest.
    """
    xp = checks.sequences(x)
    checks.has_tokens("x", x)
    kept_tokens, any_kept = x, None
    if mask is not None:
        check_padding(mask, x)
        kept_tokens = xp.where(mask[..., None], x, -xp.inf)  # padding never wins
        any_kept = mask.any(axis=1, keepdims=True)  # [batch, 1]
    winner = kept_tokens.argmax(axis=1)[:, None, :]  # the first of equals; [batch, 1, d_model]
    y = xp.take_along_axis(kept_tokens, winner, axis=1)[:, 0, :]  # [batch, d_model]
    return zero_other_rows(any_kept, y), (winner, any_kept, x.shape)


def max_pooling_backward(dy: Array, cache: Any) -> Array:
    """dx = dy at the token that had the largest value, feature by feature, and 0 elsewhere.

    y_c = x_tc for the winner t, so the derivative by x_tc is 1, and by any other token 0: a small
    change there does not make it the largest. Among equals there is no derivative; the first one
    gets the gradient.
    """
    winner, any_kept, (batch, length, d_model) = cache
    xp = checks.gradient(dy, (batch, d_model))
    # y = x[winner]
    tokens = xp.arange(length)[None, :, None]
    # the winner gets all of it
    return xp.where(tokens == winner, zero_other_rows(any_kept, dy)[:, None, :], 0.0)
