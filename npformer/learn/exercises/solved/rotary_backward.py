# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of rotary positional encoding.

Features i and i + d / 2 of a token are a pair (a, b). A token at position t turns pair i by the
angle t theta^(-2 i / d):

    a' = a cos - b sin
    b' = a sin + b cos

    dy   (..., length, d)   given
    dx   (..., length, d)

Positions are whole numbers, and have no gradient.
"""

import numpy as np

# %% Given: the forward pass


def rotary(x, positions, theta=10000.0):
    """Turn each pair of features by the angle of its token's position."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * theta ** (-np.arange(half) / half)  # (length, d / 2)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    y = np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return y, (cos, sin)


# %% Your part: the backward pass


def rotary_backward(dy, cache):
    """Return dx."""
    cos, sin = cache
    # your code
    half = cos.shape[-1]
    da, db = dy[..., :half], dy[..., half:]
    return np.concatenate([da * cos + db * sin, db * cos - da * sin], axis=-1)
    # end of your code
