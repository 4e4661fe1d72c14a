# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of attention, with a mask.

    S = Q K^T / sqrt(d_head),    A = softmax(S) over the keys that the mask keeps,    y = A V.

    dy      (..., query_length, d_value)   given
    dquery  (..., query_length, d_head)
    dkey    (..., key_length, d_head)
    dvalue  (..., key_length, d_value)

There may be any number of axes in front. The weights A are in the cache; they are 0 where the mask
is False, and a query that may see no key has weights of 0 only.
"""

import math

import numpy as np

# %% Given: the forward pass


def attention(query, key, value, mask=None):
    """mask: bool, (..., query_length, key_length), True = keep."""
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0.0, 1.0, total)
    return weights @ value, (query, key, value, weights, scale)


# %% Your part: the backward pass


def attention_backward(dy, cache):
    """Return dquery, dkey and dvalue."""
    query, key, value, weights, scale = cache
    # your code
    # y = weights @ value
    dvalue = weights.swapaxes(-1, -2) @ dy
    dweights = dy @ value.swapaxes(-1, -2)
    # weights = softmax(scores)
    inner = (dweights * weights).sum(axis=-1, keepdims=True)
    dscores = weights * (dweights - inner)
    # scores = query @ key^T * scale
    dquery = dscores @ key * scale
    dkey = dscores.swapaxes(-1, -2) @ query * scale
    return dquery, dkey, dvalue
    # end of your code
