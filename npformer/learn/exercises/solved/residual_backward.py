# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of two residual connections, one after another.

    h = x + f(x),    z = h + g(h),

where f and g are layers with a weight each. Their backward pass is given; how it is called, and how
the gradients are put together, is your part. An encoder block is built like this.

    dz   (..., d)    given
    dx   (..., d)
    dW1  (d, d)      the weight of f
    dW2  (d, d)      the weight of g
"""

import numpy as np

# %% Given: a layer, forward and backward


def layer(x, W):
    """y = tanh(x W)."""
    y = np.tanh(x @ W)
    return y, (x, W, y)


def layer_backward(dy, cache):
    """Return dx and dW."""
    x, W, y = cache
    du = dy * (1.0 - y * y)
    return du @ W.T, x.reshape(-1, len(W)).T @ du.reshape(-1, len(W))


# %% Given: the forward pass


def residual(x, W1, W2):
    """Two residual connections."""
    fx, f_cache = layer(x, W1)
    h = x + fx
    gh, g_cache = layer(h, W2)
    z = h + gh
    return z, (f_cache, g_cache)


# %% Your part: the backward pass


def residual_backward(dz, cache):
    """Return dx, dW1 and dW2."""
    f_cache, g_cache = cache
    # your code
    # z = h + g(h)
    through_g, dW2 = layer_backward(dz, g_cache)
    dh = dz + through_g
    # h = x + f(x)
    through_f, dW1 = layer_backward(dh, f_cache)
    dx = dh + through_f
    return dx, dW1, dW2
    # end of your code
