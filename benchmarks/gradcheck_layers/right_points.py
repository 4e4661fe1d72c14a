"""Right layers at corners, ties and steps, with zero gradients, and with steep or curved parts."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import normal, right
from benchmarks.gradcheck_layers.differences import between_the_slopes


@right(np.array([[[-1.0, 0.0, 2.0, 0.0]]]), shows=between_the_slopes)
class CornerAtZero(nf.Layer):
    """ReLU at 0 itself, with slope 0 there."""

    def forward(self, x, context):
        return np.where(x > 0, x, 0.0), x > 0

    def backward(self, dy, cache, gradients):
        return dy * cache


@right(np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]]), shows=between_the_slopes)
class TiesShare(nf.Layer):
    """The maximum over tokens, at a tie, whose gradient is shared equally."""

    def forward(self, x, context):
        y = x.max(axis=1)
        tied = x == y[:, None]
        return y, (tied / tied.sum(axis=1, keepdims=True)).astype(x.dtype)

    def backward(self, dy, cache, gradients):
        return dy[:, None] * cache


@right(np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]]), shows=between_the_slopes)
class FirstOfTies(nf.Layer):
    """The maximum over tokens, at a tie, whose gradient goes to the first."""

    def forward(self, x, context):
        return x.max(axis=1), (x.argmax(axis=1)[:, None], x.shape)

    def backward(self, dy, cache, gradients):
        dx = np.zeros(cache[1], dy.dtype)
        np.put_along_axis(dx, cache[0], dy[:, None], axis=1)
        return dx


@right((2, 5, 4))
class OneHot(nf.Layer):
    """Which feature is the largest: steps, so the gradient is 0."""

    def forward(self, x, context):
        return (x == x.max(axis=-1, keepdims=True)).astype(x.dtype), None

    def backward(self, dy, cache, gradients):
        return np.zeros_like(dy)


@right((2, 5, 4))
class Sawtooth(nf.Layer):
    """What is left of x after rounding down: slope 1 between the jumps."""

    def forward(self, x, context):
        return x - np.floor(x), None

    def backward(self, dy, cache, gradients):
        return dy.copy()


@right((2, 5, 4))
class Independent(nf.Layer):
    """Returns positions alone, so dx is None."""

    def forward(self, x, context):
        return np.zeros_like(x) + np.arange(x.shape[1], dtype=x.dtype)[:, None], None

    def backward(self, dy, cache, gradients):
        return None


@right((2, 5, 4))
class Jump(nf.Layer):
    """x^2 below 0 and x^3 + 100 above."""

    def forward(self, x, context):
        return np.where(x < 0, x**2, x**3 + 100.0), x

    def backward(self, dy, cache, gradients):
        return dy * np.where(cache < 0, 2.0 * cache, 3.0 * cache**2)


@right(np.array([[[0.0, 1e-3, -0.5, 2.0]]]), step=1e-7)
class NearlyACorner(nf.Layer):
    """The root of x^2 + 1e-8: smooth, and at 0 bent within 1e-4."""

    def forward(self, x, context):
        y = (x * x + 1e-8) ** 0.5
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        return dy * x / y


@right((2, 3, 4), step=1e-6)
class FastWaves(nf.Layer):
    """sin(1000 x) / 1000, which bends within 1e-3."""

    def forward(self, x, context):
        return np.sin(1000.0 * x) / 1000.0, x

    def backward(self, dy, cache, gradients):
        return dy * np.cos(1000.0 * cache)


@right((2, 3, 4), step=1e-6)
class SteepSigmoid(nf.Layer):
    """A sigmoid of 200 x: nearly a step, so most slopes are tiny."""

    def forward(self, x, context):
        s = 1.0 / (1.0 + np.exp(-200.0 * x))
        return s, s

    def backward(self, dy, cache, gradients):
        return dy * 200.0 * cache * (1.0 - cache)


@right((2, 5, 4), floor=1e-3)
class Cancelled(nf.Layer):
    """The sum of a softmax: 1 whatever x is, so dx is 0 but for rounding."""

    def forward(self, x, context):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return p.sum(axis=-1), p

    def backward(self, dy, cache, gradients):
        return cache * (dy[..., None] - (dy[..., None] * cache).sum(axis=-1, keepdims=True))


@right(normal(2, 5, 4, scale=20.0))
class HardTanh(nf.Layer):
    """Values clipped to [-1, 1], where most lie outside."""

    def forward(self, x, context):
        return np.clip(x, -1.0, 1.0), abs(x) < 1.0

    def backward(self, dy, cache, gradients):
        return dy * cache


@right((2, 5, 4))
class MedianOfThree(nf.Layer):
    """The median of three neighbours in a ring, which goes to the one that it came from."""

    def forward(self, x, context):
        three = np.stack([np.roll(x, k, axis=1) for k in (-1, 0, 1)])
        which = three.argsort(axis=0)[1:2]
        return np.take_along_axis(three, which, axis=0)[0], which

    def backward(self, dy, cache, gradients):
        three = np.zeros((3, *dy.shape), dy.dtype)
        np.put_along_axis(three, cache, dy[None], axis=0)
        return sum(np.roll(part, -k, axis=1) for part, k in zip(three, (-1, 0, 1), strict=True))


@right(np.zeros((1, 3, 4)))
class FlatAtZero(nf.Layer):
    """x^4 at 0, where value and slope are 0."""

    def forward(self, x, context):
        return x**4, x

    def backward(self, dy, cache, gradients):
        return 4.0 * dy * cache**3


@right(abs(normal(2, 3, 4)) + 0.1)
class RefusesNegatives(nf.Layer):
    """A logarithm that refuses numbers that are not positive."""

    def forward(self, x, context):
        if not (x.real > 0).all():
            raise ValueError("x has numbers that are not positive; expected positive ones")
        return np.log(x), x

    def backward(self, dy, cache, gradients):
        return dy / cache
