"""Wrong numbers: for some sizes, at limits and ties, nearly right, under masks."""

import numpy as np

import npformer as nf
from tests.proof.layers_of_others.cases import wrong


@wrong((2, 5, 4))
class LastOddToken(nf.Layer):
    """Pairs of tokens are averaged; the last token of an odd length gets no gradient."""

    def forward(self, x, context):
        y = x.copy()
        n = x.shape[1] // 2 * 2
        y[:, 0:n:2] = y[:, 1:n:2] = 0.5 * (x[:, 0:n:2] + x[:, 1:n:2])
        return y, None

    def backward(self, dy, cache, gradients):
        dx = np.zeros_like(dy)
        n = dy.shape[1] // 2 * 2
        dx[:, 0:n:2] = dx[:, 1:n:2] = 0.5 * (dy[:, 0:n:2] + dy[:, 1:n:2])
        return dx


@wrong((2, 5, 4))
class SquareNotTransposed(nf.Layer):
    """A square matrix, not transposed on the way back."""

    def __init__(self, d=4):
        self.weight = nf.Parameter(np.eye(d))

    def forward(self, x, context):
        return x @ self.weight.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.weight, np.einsum("bli,blj->ij", cache, dy))
        return dy @ self.weight.value


@wrong((2, 5, 4))
class HeadsNotSwappedBack(nf.Layer):
    """Splits heads to act on them, and joins them without swapping the axes back."""

    def forward(self, x, context):
        b, n, d = x.shape
        heads = x.reshape(b, n, 2, d // 2).swapaxes(1, 2)
        return heads**2, heads

    def backward(self, dy, cache, gradients):
        b, _, n, h = dy.shape
        return (2.0 * dy * cache).reshape(b, n, 2 * h)


@wrong(np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]]))
class TiesGetItTwice(nf.Layer):
    """The maximum over tokens; each of two equal tokens gets the whole gradient."""

    def forward(self, x, context):
        y = x.max(axis=1)
        return y, x == y[:, None]

    def backward(self, dy, cache, gradients):
        return dy[:, None] * cache


@wrong((2, 5, 4))
class PowerOfNegatives(nf.Layer):
    """x to the power 1.5 where x > 0, else 0; going back the branch is multiplied, not chosen."""

    def forward(self, x, context):
        return np.where(x > 0, abs(x) ** 1.5, 0.0), x

    def backward(self, dy, cache, gradients):
        with np.errstate(invalid="ignore"):
            return dy * (cache > 0) * 1.5 * cache**0.5


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


class _Rms(nf.Layer):
    """RMS norm with eps beside the root; going back it is under the root."""

    eps = 1e-4

    def forward(self, x, context):
        return x / ((x * x).mean(axis=-1, keepdims=True) ** 0.5 + self.eps), x

    def backward(self, dy, cache, gradients):
        r = ((cache * cache).mean(axis=-1, keepdims=True) + self.eps) ** 0.5
        n = cache / r
        return (dy - n * (dy * n).mean(axis=-1, keepdims=True)) / r


@wrong((2, 3, 4))
class EpsElsewhere(_Rms):
    """RMS norm with eps = 1e-4 beside the root, and under it going back."""


@wrong((2, 3, 4))
class TinyEpsElsewhere(_Rms):
    """The same with eps = 1e-8."""

    eps = 1e-8


@wrong((2, 5, 4))
class DifferencesInside(nf.Layer):
    """Its slope is a difference quotient with a step of 3e-4, right to 1e-8."""

    def forward(self, x, context):
        return np.sin(x) * np.exp(-x), x

    def backward(self, dy, cache, gradients):
        one, two = (np.sin(z) * np.exp(-z) for z in (cache + 3e-4, cache - 3e-4))
        return dy * (one - two) / 6e-4


REPEATED = np.array([[3, 7, 3], [7, 7, 1]])


def turn(x, direction=1.0):
    """Rotate pairs of features by an angle for each position."""
    n, h = x.shape[1], x.shape[2] // 2
    angle = direction * np.arange(n)[:, None] / 10.0 ** np.arange(h)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[..., :h], x[..., h:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


MASK = np.arange(5) < np.array([[5], [3]])
HOLE = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 0, 1]], bool)
EMPTY = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)


class Mean(nf.Layer):
    """The mean of the tokens that the mask keeps, the base of mistakes."""

    def forward(self, x, context):
        keep = np.ones(x.shape[:2], bool) if context.mask is None else context.mask
        n = np.maximum(keep.sum(axis=1), 1)[:, None]
        return np.where(keep[..., None], x, 0.0).sum(axis=1) / n, (keep, context.mask)

    def backward(self, dy, cache, gradients):
        keep = cache[0]
        n = np.maximum(keep.sum(axis=1), 1)[:, None]
        return (dy / n)[:, None] * keep[..., None]


@wrong((2, 5, 4), mask=MASK)
class PaddingGetsAGradient(Mean):
    """The mean of the kept tokens, whose gradient goes to padding, too."""

    def backward(self, dy, cache, gradients):
        everything = np.ones_like(cache[0])
        n = cache[0].sum(axis=1)[:, None]
        return (dy / n)[:, None] * everything[..., None]


@wrong((2, 5, 4), mask=MASK)
class MaskOfTheFirstSample(Mean):
    """Going back every sample gets the first one's mask."""

    def backward(self, dy, cache, gradients):
        keep = np.repeat(cache[0][:1], len(dy), axis=0)
        return super().backward(dy, (keep, None), gradients)


class _Types(nf.Layer):
    """Adds a vector for the type of each token; gradients for two types alone."""

    def __init__(self):
        self.table = nf.Parameter(np.zeros((3, 4)))

    def forward(self, x, context):
        return x**2 + self.table.value[context.types], (x, context.types)

    def backward(self, dy, cache, gradients):
        x, types = cache
        d = np.zeros_like(self.table.value)
        for k in range(2):
            d[k] = dy[types == k].sum(axis=0)
        gradients.add(self.table, d)
        return 2.0 * dy * x


TWO = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])


@wrong((2, 5, 4), types=TWO + 1)
class ThirdType(_Types):
    """A vector for each token's type; the third type's gets no gradient."""


class _Cross(nf.TwoInputLayer):
    """Each token of a gets the mean of the kept tokens of b, times itself."""

    def forward(self, a, b, context):
        keep = context.memory_mask
        m = (b * keep[..., None]).sum(axis=1) / keep.sum(axis=1)[:, None]
        return a * m[:, None], (a, m, context.mask, keep)

    def backward(self, dy, cache, gradients):
        a, m, _, keep = cache
        dm = (dy * a).sum(axis=1)
        return dy * m[:, None], (dm / keep.sum(axis=1)[:, None])[:, None] * keep[..., None]


@wrong((2, 5, 4), (2, 5, 4), mask=(MASK, MASK[::-1]))
class MaskOfTheOtherInput(_Cross):
    """Going back it takes the mask of a for that of b."""

    def backward(self, dy, cache, gradients):
        a, m, mask, _ = cache
        return super().backward(dy, (a, m, mask, mask), gradients)


@wrong((2, 5, 4), (2, 5, 4), mask=(None, MASK))
class InPlaceOfBoth(_Cross):
    """The gradients of the two inputs are returned in the wrong order."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients)[::-1]
