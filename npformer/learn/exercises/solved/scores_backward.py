# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of attention's scores.

    S = Q K^T / sqrt(d_head): how well each query fits each key.

    dS      (..., query_length, key_length)   given
    dquery  (..., query_length, d_head)
    dkey    (..., key_length, d_head)

There may be any number of axes in front, such as batch and heads. K^T swaps the last two axes only.
"""

import math

import numpy as np

# %% Given: the forward pass


def scores(query, key):
    """Dot products of all queries with all keys, scaled."""
    scale = 1.0 / math.sqrt(query.shape[-1])
    S = query @ np.swapaxes(key, -1, -2) * scale
    return S, (query, key, scale)


# %% Your part: the backward pass


def scores_backward(dS, cache):
    """Return dquery and dkey."""
    query, key, scale = cache
    # your code
    dquery = dS @ key * scale
    dkey = np.swapaxes(dS, -1, -2) @ query * scale
    return dquery, dkey
    # end of your code
