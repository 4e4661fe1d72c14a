# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of dropout.

In training each entry is dropped with probability `rate`, and the others are made larger, so that
the expectation of y is x:

    y = x kept / (1 - rate).

At evaluation, when there is no generator, y = x and the cache is None.

    dy  given, in the shape of x
    dx  in the shape of x
"""

import numpy as np

# %% Given: the forward pass


def dropout(x, rate, generator=None):
    """Drop some entries in training; do nothing at evaluation."""
    if generator is None:
        return x, None
    kept = generator.random(x.shape) >= rate  # True or False for each entry
    scale = 1.0 / (1.0 - rate)
    return np.where(kept, x, 0.0) * scale, (kept, scale)


# %% Your part: the backward pass


def dropout_backward(dy, cache):
    """Return dx, in training and at evaluation."""
    # your code
    if cache is None:
        return dy
    kept, scale = cache
    return np.where(kept, dy, 0.0) * scale
    # end of your code
