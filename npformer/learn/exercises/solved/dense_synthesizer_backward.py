# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of the Dense Synthesizer.

    S = relu(x W1 + b1) W2 + b2,    A = softmax(S),    y = A V.

Each token computes its row of scores from itself alone; no token is compared with another. W2 has a
column for each of max_len positions, and a sequence uses the first `length` of them.

    dy      (batch, length, d_value)     given
    dx      (batch, length, d)
    dvalue  (batch, length, d_value)
    dW1     (d, d_hidden)
    db1     (d_hidden,)
    dW2     (d_hidden, max_len)
    db2     (max_len,)
"""

import numpy as np

# %% Given: the forward pass


def dense_synthesizer(x, value, W1, b1, W2, b2):
    """Weights from each token alone, then an average of the values."""
    length = x.shape[1]
    hidden = np.maximum(x @ W1 + b1, 0.0)  # (batch, length, d_hidden)
    scores = hidden @ W2[:, :length] + b2[:length]  # (batch, length, length)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, (x, value, W1, W2, hidden, weights)


# %% Your part: the backward pass


def dense_synthesizer_backward(dy, cache):
    """Return dx, dvalue, dW1, db1, dW2 and db2."""
    x, value, W1, W2, hidden, weights = cache
    length = x.shape[1]
    # your code
    # y = weights @ value
    dvalue = weights.swapaxes(-1, -2) @ dy
    dweights = dy @ value.swapaxes(-1, -2)
    # weights = softmax(scores)
    inner = (dweights * weights).sum(axis=-1, keepdims=True)
    dscores = weights * (dweights - inner)
    # scores = hidden @ W2[:, :length] + b2[:length]
    dW2 = np.zeros_like(W2)
    dW2[:, :length] = np.einsum("bli,blo->io", hidden, dscores)
    db2 = np.zeros_like(W2[0])
    db2[:length] = dscores.sum(axis=(0, 1))
    dhidden = dscores @ W2[:, :length].T
    # hidden = max(0, before), before = x @ W1 + b1
    dbefore = dhidden * (hidden > 0.0)
    dW1 = np.einsum("bli,blo->io", x, dbefore)
    return dbefore @ W1.T, dvalue, dW1, dbefore.sum(axis=(0, 1)), dW2, db2
    # end of your code
