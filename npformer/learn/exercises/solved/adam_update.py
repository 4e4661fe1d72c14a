# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""One step of Adam.

With the gradient g, at step t = 1, 2, 3, ...:

    m is a running mean of g, and v one of g^2; both were 0 before the first step. The old value
    has the weight beta1 (or beta2), and the new one has the rest.
    Starting from 0 makes both too small at first: by the factors 1 - beta1^t and 1 - beta2^t.
    Divided by these factors, they are called m_hat and v_hat.
    theta moves against m_hat, divided by the root of v_hat; eps, added to the root, keeps the
    division finite. lr is the length of the step.

So the first step has the size lr in every entry, whatever the size of the gradient.
"""

import numpy as np

# %% Your part: the update


def adam_update(theta, g, m, v, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Return the new theta, m and v; the arrays that came in stay as they are."""
    # your code
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    m_hat = m / (1.0 - beta1**t)
    v_hat = v / (1.0 - beta2**t)
    theta = theta - lr * m_hat / (np.sqrt(v_hat) + eps)
    return theta, m, v
    # end of your code
