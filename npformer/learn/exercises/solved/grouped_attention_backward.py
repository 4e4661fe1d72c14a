# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of attention with grouped queries.

There are fewer heads of keys and values than of queries. Head h of the queries reads head
h // times of the keys and values, so that each of these serves `times` heads that stand side by
side. The forward pass repeats them; `attend_backward` is given.

    dy            (batch, heads, length, d)           given
    dquery        (batch, heads, length, d)
    dkey, dvalue  (batch, heads / times, length, d)
"""

import numpy as np

from npformer.functional import scaled_dot_product_attention as attend
from npformer.functional import scaled_dot_product_attention_backward as attend_backward

# %% Given: the forward pass


def grouped_attention(query, key, value):
    """Attention of all heads of queries, with keys and values that some of them share."""
    times = query.shape[1] // key.shape[1]
    keys, values = (np.repeat(each, times, axis=1) for each in (key, value))
    y, attend_cache = attend(query, keys, values)  # (batch, heads, length, d)
    return y, (times, attend_cache)


# %% Your part: the backward pass


def grouped_attention_backward(dy, cache):
    """Return dquery, dkey and dvalue. attend_backward(dy, attend_cache) is for repeated ones."""
    times, attend_cache = cache
    # your code
    dquery, dkeys, dvalues = attend_backward(dy, attend_cache)
    batch, heads, length, d = dkeys.shape
    groups = batch, heads // times, times, length, d
    dkey, dvalue = (each.reshape(groups).sum(axis=2) for each in (dkeys, dvalues))
    return dquery, dkey, dvalue
    # end of your code
