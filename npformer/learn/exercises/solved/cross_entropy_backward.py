# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of softmax and cross-entropy together.

    loss = the mean of -log softmax(logits)[label] over all rows that have a label.

A row whose label is -1 has none: it is left out of the mean.

    dloss    ()                  given: a number, 1.0 if this loss is the last thing computed
    dlogits  (rows, classes)
"""

import numpy as np

# %% Given: the forward pass


def cross_entropy(logits, labels):
    """logits (rows, classes), labels (rows,) -> a number."""
    has_label = labels >= 0
    right = np.where(has_label, labels, 0)  # any class where there is no label
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # log softmax(logits)
    each = -log_p[np.arange(len(right)), right]
    count = max(int(has_label.sum()), 1)
    loss = np.where(has_label, each, 0.0).sum() / count
    return loss, (log_p, right, has_label, count)


# %% Your part: the backward pass


def cross_entropy_backward(dloss, cache):
    """Return dlogits."""
    log_p, right, has_label, count = cache
    # your code
    drow = np.exp(log_p)
    drow[np.arange(len(right)), right] -= 1.0
    drow = drow * (dloss / count)
    return np.where(has_label[:, None], drow, 0.0)
    # end of your code
