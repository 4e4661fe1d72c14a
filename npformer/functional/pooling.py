"""From a sequence to one vector: the mean of its tokens."""

from typing import Any

from npformer.core import Array, array_module, backend_of, checks


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
    xp = checks.floating(x=x)
    checks.shape("x", x, ("batch", "length", "d_model"))
    checks.has_tokens("x", x)
    if mask is None:
        return x.mean(axis=1), (1.0 / x.shape[1], None, x.shape)
    backend_of(x=x, mask=mask)
    checks.mask("mask", mask, tuple(x.shape[:2]))
    count = xp.maximum(mask.sum(axis=1, keepdims=True), 1).astype(x.dtype)  # [batch, 1]
    kept = xp.where(mask[..., None], x, 0.0)  # not x * mask: padding may hold anything
    return kept.sum(axis=1) / count, (1.0 / count, mask, x.shape)


def mean_pooling_backward(dy: Array, cache: Any) -> Array:
    """dx = dy / count for each kept token, and 0 for padding.

    y = (x_1 + ... + x_count) / count has the derivative 1 / count by each kept x_t, feature by
    feature; the count depends on the mask alone. Padding does not occur in y.
    """
    share, mask, (batch, length, d_model) = cache
    checks.gradient(dy, (batch, d_model))
    xp = array_module(dy)
    # y = sum over kept tokens of x / count
    dkept = (dy * share)[:, None, :]  # [batch, 1, d_model]
    if mask is None:
        return xp.repeat(dkept, length, axis=1)
    return xp.where(mask[..., None], dkept, 0.0)
