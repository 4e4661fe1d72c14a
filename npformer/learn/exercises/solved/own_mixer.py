# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""A token mixer of your own: forward, backward, explain.

In a mixer tokens see each other: (batch, length, d_model) becomes the same shape. Which rule they
follow is yours to choose. A mean over the sequence is a good first one; so is a shift by a token, a
running mean, or anything that nobody has published. The rules that every mixer keeps:

- Sequences of a batch do not see each other.
- context.mask, (batch, length), is True for tokens and False for padding; None means no padding.
  Whatever padding holds, even NaN, changes no token's y; and in dy, no token's dx.
- backward is the derivative of forward. It adds the gradient of each parameter,
  gradients.add(self.name, its_gradient), and returns dx. It changes neither dy nor the cache.
- explain returns (batch, heads, length, length); one head will do. Entry (i, j) is the
  weight of token j for token i: exactly 0 where it reads nothing, and if one of the two is padding.

A mixer may have parameters, self.name = nf.Parameter(array), or none at all. Set them in __init__;
use `dtype` for them, and numpy.random.default_rng(seed) if they are random.
"""

import numpy as np

import npformer as nf
from npformer.mixers import Mixer


def tokens_of(x, mask):
    """Return x with 0 at padding; 0 * NaN is NaN, so a product with the mask would not do."""
    return x if mask is None else np.where(mask[..., None], x, 0.0)


# %% Your part: the mixer


class OwnMixer(Mixer):
    """Say here what your mixer does."""

    @classmethod
    def build(cls, settings, *, seed, dtype):
        """Make this mixer for an encoder; settings.d_model, .max_len and .n_heads may help."""
        return cls(settings.d_model, seed=seed, dtype=dtype)

    def __init__(self, d_model, *, seed=0, dtype="float32"):
        # your code
        self.own = nf.Parameter(np.ones(d_model, dtype=dtype))  # what a token keeps of itself
        self.shared = nf.Parameter(np.ones(d_model, dtype=dtype))  # that of the mean
        # end of your code

    def forward(self, x, context):
        """Return y, in the shape of x, and a cache of what backward needs."""
        # your code
        x = tokens_of(x, context.mask)
        count = x.shape[1] if context.mask is None else context.mask.sum(axis=1)[:, None, None]
        count = np.maximum(count, 1).astype(x.dtype)
        mean = x.sum(axis=1, keepdims=True) / count  # (batch, 1, d_model)
        y = x * self.own.value + mean * self.shared.value
        return tokens_of(y, context.mask), (x, mean, count, context.mask)
        # end of your code

    def backward(self, dy, cache, gradients):
        """Add the parameters' gradients to `gradients`, and return dx."""
        # your code
        x, mean, count, mask = cache
        dy = tokens_of(dy, mask)
        dsum = dy.sum(axis=1, keepdims=True)  # every token of a sequence took the same mean
        gradients.add(self.own, (dy * x).sum(axis=(0, 1)))
        gradients.add(self.shared, (dsum * mean).sum(axis=(0, 1)))
        dx = dy * self.own.value + dsum * self.shared.value / count
        return tokens_of(dx, mask)
        # end of your code

    def explain(self, x, context):
        """Return the mixing weights: (batch, heads, length, length)."""
        # your code
        batch, length = x.shape[:2]
        mask = np.ones((batch, length), dtype=bool) if context.mask is None else context.mask
        count = np.maximum(mask.sum(axis=1), 1)[:, None, None]
        own, shared = self.own.value.mean(), self.shared.value.mean()
        matrix = own * np.eye(length) + shared / count  # averages over the features
        pairs = mask[:, :, None] & mask[:, None, :]
        return np.where(pairs, matrix, 0.0)[:, None]
        # end of your code
