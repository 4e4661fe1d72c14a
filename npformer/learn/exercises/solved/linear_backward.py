# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of a linear map.

The forward pass is given: y = x W + b, the same for every row of x. Write the backward pass.

    dy  (..., d_out)      given: the gradient of the loss with respect to y, in the shape of y
    dx  (..., d_in)       with respect to x
    dW  (d_in, d_out)     with respect to W
    db  (d_out,)          with respect to b

x may have any number of axes before its last: (rows, d_in) must work, and so must
(batch, length, d_in).
"""

import numpy as np

# %% Given: the forward pass


def linear(x, W, b):
    """y = x W + b for each row of x."""
    y = x @ W + b  # (..., d_in), (d_in, d_out) -> (..., d_out)
    return y, (x, W)


# %% Your part: the backward pass


def linear_backward(dy, cache):
    """Return dx, dW and db."""
    x, W = cache
    # your code
    d_in, d_out = W.shape
    drows = dy.reshape(-1, d_out)  # one row for each row of x, however many axes it has
    dx = dy @ W.T
    dW = x.reshape(-1, d_in).T @ drows
    db = np.sum(drows, axis=0)
    return dx, dW, db
    # end of your code
