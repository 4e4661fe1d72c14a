# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of mean pooling, with a mask.

    y = the mean of the tokens that the mask keeps, one vector for each sequence.

    mask  (batch, length)        True = keep, False = padding
    dy    (batch, d)             given
    dx    (batch, length, d)

A sequence of padding alone has y = 0.
"""

import numpy as np

# %% Given: the forward pass


def pooling(x, mask):
    """(batch, length, d) -> (batch, d)."""
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1).astype(x.dtype)  # (batch, 1)
    kept = np.where(mask[..., None], x, 0.0)  # (batch, length, d)
    return kept.sum(axis=1) / count, (mask, count)


# %% Your part: the backward pass


def pooling_backward(dy, cache):
    """Return dx."""
    mask, count = cache
    # your code
    share = (dy / count)[:, None, :]  # (batch, 1, d): the same for each token that is kept
    return np.where(mask[..., None], share, 0.0)
    # end of your code
