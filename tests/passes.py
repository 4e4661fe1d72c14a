"""Both passes of a layer at once, for tests that compare two layers."""

import numpy as np

from npformer import Context, Gradients


def both_passes(layer, x, context=None, dy=None):
    """Return y, dx and the parameters' gradients."""
    y, cache = layer.forward(x, Context() if context is None else context)
    if dy is None:
        dy = np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
    gradients = Gradients(layer)
    dx = layer.backward(dy, cache, gradients)
    return [y, dx, *gradients.values()]


def assert_same(some, others):
    """Assert that two lists of arrays are equal bit for bit, up to axes of length 1."""
    for one, other in zip(some, others, strict=True):
        assert one.size == other.size
        np.testing.assert_array_equal(one.reshape(other.shape), other)
