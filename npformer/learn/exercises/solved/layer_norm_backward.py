# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of layer norm.

    n = (x - mean) / sqrt(var + eps),    y = gamma n + beta,

with mean and variance of each row, that is, over the last axis.

    dy      (..., d)   given
    dx      (..., d)
    dgamma  (d,)
    dbeta   (d,)

x reaches n in three ways: directly, through the mean, and through the variance.
"""

import numpy as np

# %% Given: the forward pass


def layer_norm(x, gamma, beta, eps=1e-5):
    """Rows of mean 0 and variance 1, then a scale and a shift for each feature."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    inverse_std = 1.0 / np.sqrt(variance + eps)  # (..., 1)
    normalised = centred * inverse_std  # (..., d)
    return gamma * normalised + beta, (normalised, inverse_std, gamma)


# %% Your part: the backward pass


def layer_norm_backward(dy, cache):
    """Return dx, dgamma and dbeta."""
    normalised, inverse_std, gamma = cache
    # your code
    d = len(gamma)
    dbeta = dy.reshape(-1, d).sum(axis=0)
    dgamma = (dy * normalised).reshape(-1, d).sum(axis=0)
    g = dy * gamma  # the gradient with respect to normalised
    along_mean = g.mean(axis=-1, keepdims=True)
    along_row = (g * normalised).mean(axis=-1, keepdims=True)
    dx = (g - along_mean - normalised * along_row) * inverse_std
    return dx, dgamma, dbeta
    # end of your code
