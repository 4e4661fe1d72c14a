# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of cross-attention, with one head.

    Q = x Wq,    K = m Wk,    V = m Wv,    y = attend(Q, K, V) Wo.

    x        (batch, length, d)           the target, which asks
    memory   (batch, memory_length, d)    m, the source, which answers
    dy       (batch, length, d)           given
    dx, dmemory, dWq, dWk, dWv, dWo       of the shapes of x, memory and the weights

x and the memory have different lengths. `attend_backward` of exercise 12 is given.
"""

import math

import numpy as np

# %% Given: attention, forward and backward, and the forward pass


def attend(query, key, value):
    """y = softmax(Q K^T / sqrt(d)) V."""
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, (query, key, value, weights, scale)


def attend_backward(dy, cache):
    """Return dquery, dkey and dvalue."""
    query, key, value, weights, scale = cache
    dweights = dy @ value.swapaxes(-1, -2)
    inner = (dweights * weights).sum(axis=-1, keepdims=True)
    dscores = weights * (dweights - inner) * scale
    dvalue = weights.swapaxes(-1, -2) @ dy
    return dscores @ key, dscores.swapaxes(-1, -2) @ query, dvalue


def cross_attention(x, memory, Wq, Wk, Wv, Wo):
    """Return y and what the backward pass needs."""
    taken, cache = attend(x @ Wq, memory @ Wk, memory @ Wv)
    return taken @ Wo, (x, memory, Wq, Wk, Wv, Wo, taken, cache)


# %% Your part: the backward pass


def cross_attention_backward(dy, cache):
    """Return dx, dmemory, dWq, dWk, dWv and dWo."""
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
