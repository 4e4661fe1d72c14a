"""Wrong on a branch that few inputs take: limits, ties, zeros, and stopped gradients."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, normal, wrong
from benchmarks.gradcheck_layers.differences import between_the_slopes


@wrong((2, 5, 4), shows=at(normal(2, 5, 4, scale=6.0)), missed=True)
class ClipsOneSide(nf.Layer):
    """Values are clipped to [-6, 6], the gradient only at -6."""

    def forward(self, x, context):
        return np.clip(x, -6.0, 6.0), x

    def backward(self, dy, cache, gradients):
        return dy * (cache > -6.0)


def twice(case):
    """Whether dx along (1, .., 1) is outside the slopes on either side."""
    return not between_the_slopes(case)


@wrong(np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]]), shows=twice)
class TiesGetItTwice(nf.Layer):
    """The maximum over tokens; each of two equal tokens gets the whole gradient."""

    def forward(self, x, context):
        y = x.max(axis=1)
        return y, x == y[:, None]

    def backward(self, dy, cache, gradients):
        return dy[:, None] * cache


@wrong((2, 5, 4))
class NoSignForNegatives(nf.Layer):
    """y = sign(x) log(1 + |x|), whose slope is taken as 1 / (1 + x)."""

    def forward(self, x, context):
        return np.sign(x) * np.log1p(abs(x)), x

    def backward(self, dy, cache, gradients):
        return dy / (1.0 + cache)


@wrong(abs(normal(2, 5, 4)), shows=at((2, 5, 4)), missed=True)
class NoSignForNegativesCheckedAbove(NoSignForNegatives):
    """The same, checked with positive numbers alone."""


@wrong((2, 5, 4), shows=at(normal(2, 5, 4, scale=30.0)), missed=True)
class SoftplusAbove20(nf.Layer):
    """Softplus is x above 20, and its slope there is left at 0."""

    def forward(self, x, context):
        return np.where(x > 20.0, x, np.log1p(np.exp(np.minimum(x, 20.0)))), x

    def backward(self, dy, cache, gradients):
        slope = 1.0 / (1.0 + np.exp(-np.clip(cache, -500.0, 20.0)))
        return np.where(cache > 20.0, 0.0, dy * slope)


@wrong((2, 5, 4))
class PowerOfNegatives(nf.Layer):
    """x to the power 1.5 where x > 0, else 0; going back the branch is multiplied, not chosen."""

    def forward(self, x, context):
        return np.where(x > 0, abs(x) ** 1.5, 0.0), x

    def backward(self, dy, cache, gradients):
        with np.errstate(invalid="ignore"):
            return dy * (cache > 0) * 1.5 * cache**0.5


@wrong((2, 5, 4), shows=at(np.zeros((1, 2, 3)), step=1e-6), missed=True)
class NoEpsGoingBack(nf.Layer):
    """The length of each token, with a tiny eps that the backward pass leaves out: nan at 0."""

    def forward(self, x, context):
        square = (x * x).sum(axis=-1, keepdims=True)
        return (square + 1e-12) ** 0.5, (x, square)

    def backward(self, dy, cache, gradients):
        x, square = cache
        with np.errstate(invalid="ignore", divide="ignore"):
            return dy * x / square**0.5


@wrong((2, 5, 4), shows=at(normal(2, 5, 4, scale=9.0)), missed=True)
class ClippedNormIsNoConstant(nf.Layer):
    """Tokens longer than 9 are shortened to 9, and the factor is taken as a constant."""

    def forward(self, x, context):
        factor = np.minimum(1.0, 9.0 / ((x * x).sum(axis=-1, keepdims=True) ** 0.5 + 1e-9))
        return x * factor, factor

    def backward(self, dy, cache, gradients):
        return dy * cache


@wrong((2, 5, 4))
class MedianOfEven(nf.Layer):
    """The median of the features; with an even number only the lower middle gets a gradient."""

    def forward(self, x, context):
        order = x.argsort(axis=-1)
        d = x.shape[-1]
        middle = order[..., (d - 1) // 2 : d // 2 + 1]
        return np.take_along_axis(x, middle, axis=-1).mean(axis=-1), (middle[..., :1], x.shape)

    def backward(self, dy, cache, gradients):
        middle, shape = cache
        dx = np.zeros(shape, dy.dtype)
        np.put_along_axis(dx, middle, dy[..., None], axis=-1)
        return dx


@wrong((2, 5, 3), shows=at((2, 5, 4)), missed=True)
class MedianOfEvenCheckedOdd(MedianOfEven):
    """The same, checked with three features."""


@wrong((2, 5, 4))
class TopTwoGate(nf.Layer):
    """The two largest features in shares that sum to 1; the shares are taken as constants."""

    def forward(self, x, context):
        chosen = x >= np.sort(x, axis=-1)[..., -2:-1]
        e = np.where(chosen, np.exp(x - x.max(axis=-1, keepdims=True)), 0.0)
        p = e / e.sum(axis=-1, keepdims=True)
        return p * x, p

    def backward(self, dy, cache, gradients):
        return dy * cache


@wrong((2, 5, 4), shows=at(normal(2, 3, 4, scale=2000.0), step=1e-2), missed=True)
class SoftmaxWithoutShiftGoingBack(nf.Layer):
    """Softmax, computed again going back without subtracting the maximum: it overflows."""

    def forward(self, x, context):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return x * e / e.sum(axis=-1, keepdims=True), x

    def backward(self, dy, cache, gradients):
        with np.errstate(all="ignore"):
            p = np.exp(cache) / np.exp(cache).sum(axis=-1, keepdims=True)
        g = dy * cache
        return dy * p + p * (g - (g * p).sum(axis=-1, keepdims=True))


@wrong((2, 5, 4))
class StraightThrough(nf.Layer):
    """Rounding, whose gradient is passed on as if it were the identity."""

    def forward(self, x, context):
        return np.round(x), None

    def backward(self, dy, cache, gradients):
        return dy


@wrong((2, 5, 4))
class ScaleIsStopped(nf.Layer):
    """Each token is divided by its largest entry, which is taken as a constant."""

    def forward(self, x, context):
        scale = abs(x).max(axis=-1, keepdims=True)
        return x / scale, scale

    def backward(self, dy, cache, gradients):
        return dy / cache


@wrong((2, 5, 4), shows=at(normal(2, 3, 4, scale=1e-3)), missed=True)
class VarianceAtItsLimit(nf.Layer):
    """A variance of at least 1e-4; going back it depends on x even at the limit."""

    def forward(self, x, context):
        c = x - x.mean(axis=-1, keepdims=True)
        r = np.maximum((c * c).mean(axis=-1, keepdims=True), 1e-4) ** 0.5
        return c / r, (c / r, r)

    def backward(self, dy, cache, gradients):
        n, r = cache
        g = dy - n * (dy * n).mean(axis=-1, keepdims=True)
        return (g - g.mean(axis=-1, keepdims=True)) / r


@wrong((2, 5, 4))
class MaxoutOfTheOther(nf.Layer):
    """The larger of two halves; the gradient goes to the smaller one."""

    def forward(self, x, context):
        a, b = np.split(x, 2, axis=-1)
        return np.where(a > b, a, b), a < b

    def backward(self, dy, cache, gradients):
        return np.concatenate([dy * cache, dy * ~cache], axis=-1)
