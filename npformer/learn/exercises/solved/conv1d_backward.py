# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of a convolution over the sequence.

    y_t = x_{t-p} W_0 + ... + x_{t+p} W_{2p} + b,

where the kernel has the odd size 2p + 1, and x is 0 outside the sequence. For p = 0 it is the
linear map of exercise 1.

    dy  (batch, length, d_out)       given
    dx  (batch, length, d_in)
    dW  (2p + 1, d_in, d_out)
    db  (d_out,)
"""

import numpy as np

# %% Given: the forward pass


def conv1d(x, W, b):
    """For each offset k a linear map of the sequence, shifted by k."""
    kernel, length = len(W), x.shape[1]
    p = kernel // 2
    padded = np.pad(x, ((0, 0), (p, p), (0, 0)))  # (batch, p + length + p, d_in)
    y = b + sum(padded[:, k : k + length] @ W[k] for k in range(kernel))
    return y, (padded, W, p)


# %% Your part: the backward pass


def conv1d_backward(dy, cache):
    """Return dx, dW and db."""
    padded, W, p = cache
    kernel, length = len(W), dy.shape[1]
    # your code
    dpadded, dW = np.zeros_like(padded), np.zeros_like(W)
    for k in range(kernel):
        # y += padded[:, k : k + length] @ W[k]
        dpadded[:, k : k + length] += dy @ W[k].T
        dW[k] = np.einsum("bli,blo->io", padded[:, k : k + length], dy)
    dx = dpadded[:, p : p + length]
    return dx, dW, dy.sum(axis=(0, 1))
    # end of your code
