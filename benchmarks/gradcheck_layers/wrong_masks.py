"""Masks, token types and two inputs: ignored or used differently going back."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, wrong

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
class DividesByTheLength(Mean):
    """Going back it divides by the length with padding."""

    def backward(self, dy, cache, gradients):
        return (dy / cache[0].shape[1])[:, None] * cache[0][..., None]


@wrong((2, 5, 4), mask=MASK)
class MaskOfTheFirstSample(Mean):
    """Going back every sample gets the first one's mask."""

    def backward(self, dy, cache, gradients):
        keep = np.repeat(cache[0][:1], len(dy), axis=0)
        return super().backward(dy, (keep, None), gradients)


@wrong((2, 5, 4), mask=MASK, shows=at((2, 5, 4), mask=EMPTY), missed=True)
class NothingKept(Mean):
    """A sample without tokens gives 0 going forward, and divides by 0 going back."""

    def backward(self, dy, cache, gradients):
        with np.errstate(all="ignore"):
            return (dy / cache[0].sum(axis=1)[:, None])[:, None] * cache[0][..., None]


@wrong((2, 5, 4), mask=MASK, shows=at((2, 5, 4), mask=HOLE), missed=True)
class PaddingAtTheEnd(Mean):
    """Going back it takes the number of kept tokens for the place where padding begins."""

    def backward(self, dy, cache, gradients):
        n = cache[0].sum(axis=1)[:, None]
        return super().backward(dy, (np.arange(cache[0].shape[1]) < n, None), gradients)


@wrong((2, 5, 4), mask=MASK, shows=at((2, 5, 4)), missed=True)
class WithoutAMask(Mean):
    """Without a mask, on a branch of its own, it divides by one token too few."""

    def backward(self, dy, cache, gradients):
        keep, mask = cache
        if mask is None:
            return np.repeat(dy[:, None], keep.shape[1], axis=1) / (keep.shape[1] - 1)
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4), mask=MASK)
class GammaOfPadding(nf.Layer):
    """y = gamma x, and 0 for padding; the gradient of gamma sums over padding."""

    def __init__(self, dtype="float64"):
        self.gamma = nf.Parameter(np.ones(4, dtype))

    def forward(self, x, context):
        keep = context.mask[..., None]
        return x * self.gamma.value * keep, (x, keep)

    def backward(self, dy, cache, gradients):
        x, keep = cache
        gradients.add(self.gamma, (dy * x).sum(axis=(0, 1)))
        return dy * self.gamma.value * keep


@wrong((2, 5, 4), mask=MASK)
class LastToken(nf.Layer):
    """Takes the last kept token of each sample; the gradient goes to the last of all."""

    def forward(self, x, context):
        last = context.mask.sum(axis=1) - 1
        return x[np.arange(len(x)), last] ** 2, x

    def backward(self, dy, cache, gradients):
        dx = np.zeros_like(cache)
        dx[:, -1] = 2.0 * dy * cache[:, -1]
        return dx


@wrong((2, 5, 4), mask=MASK)
class MaximumUnderPadding(nf.Layer):
    """The maximum of the kept tokens; going back that of all tokens."""

    def forward(self, x, context):
        return np.where(context.mask[..., None], x, -np.inf).max(axis=1), x

    def backward(self, dy, cache, gradients):
        dx = np.zeros_like(cache)
        np.put_along_axis(dx, cache.argmax(axis=1)[:, None], dy[:, None], axis=1)
        return dx


class _Types(nf.Layer):
    """Adds a vector for the type of each token; gradients for two types alone."""

    def __init__(self, dtype="float64"):
        self.table = nf.Parameter(np.zeros((3, 4), dtype))

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


@wrong((2, 5, 4), types=TWO, shows=at((2, 5, 4), types=TWO + 1), missed=True)
class ThirdTypeUnchecked(_Types):
    """The same, checked with two types."""


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


@wrong((2, 5, 4), (2, 5, 4), mask=(MASK, MASK), shows=at((2, 5, 4), (2, 5, 4), mask=(MASK, HOLE)),
       missed=True)  # fmt: skip
class MaskOfTheOtherInputAlike(MaskOfTheOtherInput):
    """The same, checked with two equal masks."""


@wrong((2, 5, 4), (2, 5, 4), mask=(None, MASK))
class InPlaceOfBoth(_Cross):
    """The gradients of the two inputs are returned in the wrong order."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients)[::-1]
