# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The distribution from which the next token is drawn.

    logits        (V,)                   one for each token
    temperature   above 0                divides the logits
    top_k         int, or None           only this many of the likeliest tokens stay
    top_p         above 0, or None       of those, the fewest whose probabilities sum to top_p
    returned      (V,)                   probabilities, whose sum is 1

In this order: the temperature, top_k, top_p of what is left. The likeliest token always stays. No
two logits are equal. `softmax` is given.
"""

import numpy as np
from scipy.special import softmax

# %% Your part


def sampling(logits, temperature=1.0, top_k=None, top_p=None):
    """Return the probability of each token."""
    # your code
    z = logits / temperature
    if top_k is not None:
        z = np.where(z >= np.sort(z)[-top_k], z, -np.inf)
    p = softmax(z)
    if top_p is not None:
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        kept = order[before < top_p]
        p = np.where(np.isin(np.arange(len(p)), kept), p, 0.0)
    return p / p.sum()
    # end of your code
