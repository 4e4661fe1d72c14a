# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of multi-head attention.

    y = merge(attend(split(x Wq), split(x Wk), split(x Wv))) Wo

`split` views (batch, length, d) as (batch, heads, length, d / heads), `merge` is its inverse, and
`attend` is the attention of the last exercise, for each head by itself. `attend_backward` is given.

    dy                   (batch, length, d)   given
    dx                   (batch, length, d)
    dWq, dWk, dWv, dWo   (d, d)

x is used three times.
"""

import numpy as np

from npformer.functional import merge_heads as merge
from npformer.functional import scaled_dot_product_attention as attend
from npformer.functional import scaled_dot_product_attention_backward as attend_backward
from npformer.functional import split_heads as split

# %% Given: the forward pass


def multi_head(x, Wq, Wk, Wv, Wo, n_heads):
    """Attention with several heads, without biases."""
    query, key, value = (split(x @ W, n_heads) for W in (Wq, Wk, Wv))
    heads, attend_cache = attend(query, key, value)  # (batch, heads, length, d / heads)
    merged = merge(heads)  # (batch, length, d)
    return merged @ Wo, (x, (Wq, Wk, Wv), Wo, merged, n_heads, attend_cache)


# %% Your part: the backward pass


def multi_head_backward(dy, cache):
    """Return dx, dWq, dWk, dWv and dWo. attend_backward(dheads, attend_cache) gives dQ, dK, dV."""
    x, (Wq, Wk, Wv), Wo, merged, n_heads, attend_cache = cache
    # your code
    # y = merged @ Wo
    dWo = np.einsum("bli,blo->io", merged, dy)
    dmerged = dy @ Wo.T
    # merged = merge(attend(...))
    dheads = split(dmerged, n_heads)
    dQ, dK, dV = (merge(d) for d in attend_backward(dheads, attend_cache))
    # query, key, value = split(x @ Wq), split(x @ Wk), split(x @ Wv)
    dWq, dWk, dWv = (np.einsum("bli,blo->io", x, d) for d in (dQ, dK, dV))
    dx = dQ @ Wq.T + dK @ Wk.T + dV @ Wv.T
    return dx, dWq, dWk, dWv, dWo
    # end of your code
