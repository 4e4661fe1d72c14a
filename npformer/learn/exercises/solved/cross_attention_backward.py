# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of cross-attention, with one head.

    Q = x Wq,    K = m Wk,    V = m Wv,    y = attend(Q, K, V) Wo.

    x        (batch, length, d)           the target, which asks
    memory   (batch, memory_length, d)    m, the source, which answers
    dy       (batch, length, d)           given
    dx, dmemory, dWq, dWk, dWv, dWo       of the shapes of x, memory and the weights

x and the memory have different lengths. `attend_backward` is given.
"""

import numpy as np

from npformer.functional import scaled_dot_product_attention as attend
from npformer.functional import scaled_dot_product_attention_backward as attend_backward

# %% Given: the forward pass


def cross_attention(x, memory, Wq, Wk, Wv, Wo):
    """Return y and what the backward pass needs."""
    taken, cache = attend(x @ Wq, memory @ Wk, memory @ Wv)
    return taken @ Wo, (x, memory, Wq, Wk, Wv, Wo, taken, cache)


# %% Your part: the backward pass


def cross_attention_backward(dy, cache):
    """Return dx, dmemory, dWq, dWk, dWv and dWo; attend_backward gives dQ, dK and dV."""
    x, memory, Wq, Wk, Wv, Wo, taken, attend_cache = cache
    # your code
    # y = taken @ Wo
    dtaken = dy @ Wo.T
    dWo = np.einsum("bli,blo->io", taken, dy)
    dQ, dK, dV = attend_backward(dtaken, attend_cache)
    # Q = x @ Wq, K = memory @ Wk, V = memory @ Wv
    dx = dQ @ Wq.T
    dmemory = dK @ Wk.T + dV @ Wv.T
    dWq = np.einsum("bli,blo->io", x, dQ)
    dWk, dWv = (np.einsum("bli,blo->io", memory, d) for d in (dK, dV))
    return dx, dmemory, dWq, dWk, dWv, dWo
    # end of your code
