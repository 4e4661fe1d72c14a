"""Gather, scatter, sorting, sums along an axis, convolution and positions."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, wrong

REPEATED = np.array([[3, 7, 3], [7, 7, 1]])


class _Embedding(nf.Layer):
    """Rows of a table; the gradient of a repeated id counts once."""

    def __init__(self, dtype="float64"):
        self.table = nf.Parameter(np.zeros((12, 3), dtype))

    def forward(self, x, context):
        return self.table.value[x], x

    def backward(self, dy, cache, gradients):
        d = np.zeros(self.table.shape, dy.dtype)
        d[cache] += dy
        gradients.add(self.table, d)


@wrong(REPEATED)
class RepeatedIds(_Embedding):
    """An embedding whose += loses the repetitions of an id."""


@wrong(np.array([[3, 7, 2], [11, 5, 1]]), shows=at(REPEATED), missed=True)
class RepeatedIdsUnchecked(_Embedding):
    """The same, checked with ids that differ."""


@wrong(REPEATED, shows=at(np.array([[0, 7, 0]])), missed=True)
class PaddingIdHasARow(_Embedding):
    """An embedding uses row 0 like any other, and gives it no gradient, as if it were padding."""

    def backward(self, dy, cache, gradients):
        d = np.zeros(self.table.shape, dy.dtype)
        np.add.at(d, cache, dy)
        d[0] = 0.0
        gradients.add(self.table, d)


@wrong((2, 5, 4))
class PositionsOfTheFirstSample(nf.Layer):
    """Positions are added to every sample, and get the first one's gradient."""

    def __init__(self, dtype="float64"):
        self.table = nf.Parameter(np.zeros((8, 4), dtype))

    def forward(self, x, context):
        return (x + self.table.value[: x.shape[1]]) ** 2, x + self.table.value[: x.shape[1]]

    def backward(self, dy, cache, gradients):
        dx = 2.0 * dy * cache
        d = np.zeros(self.table.shape, dy.dtype)
        d[: dy.shape[1]] = dx[0]
        gradients.add(self.table, d)
        return dx


@wrong((2, 5, 4))
class SortedBackByOrder(nf.Layer):
    """Sorts each row's features and sorts dy by the same order, not by its inverse."""

    def forward(self, x, context):
        order = x.argsort(axis=1)
        return np.take_along_axis(x, order, axis=1) ** 2, (x, order)

    def backward(self, dy, cache, gradients):
        x, order = cache
        d = 2.0 * dy * np.take_along_axis(x, order, axis=1)
        return np.take_along_axis(d, order, axis=1)


@wrong((2, 5, 4))
class CumsumNotTurnedBack(nf.Layer):
    """A cumulative sum, whose gradient is summed from the end and left in that order."""

    def forward(self, x, context):
        return x.cumsum(axis=1), None

    def backward(self, dy, cache, gradients):
        return dy[:, ::-1].cumsum(axis=1)


@wrong((2, 5, 4), shows=at(np.array([[[1.0], [0.0], [2.0]]])), missed=True)
class ProductDividesByX(nf.Layer):
    """A cumulative product, whose gradient divides by x: nan where x is 0."""

    def forward(self, x, context):
        y = x.cumprod(axis=1)
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        with np.errstate(all="ignore"):
            return (dy * y)[:, ::-1].cumsum(axis=1)[:, ::-1] / x


class _Convolution(nf.Layer):
    """Three taps along the tokens, zeros beyond; going back the kernel is not flipped."""

    def __init__(self, dtype="float64"):
        self.kernel = nf.Parameter(np.array([0.25, 0.5, 0.25], dtype))

    def forward(self, x, context):
        padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
        n = x.shape[1]
        return sum(w * padded[:, k : k + n] for k, w in enumerate(self.kernel.value)), padded

    def backward(self, dy, cache, gradients):
        n = dy.shape[1]
        gradients.add(
            self.kernel, np.array([(dy * cache[:, k : k + n]).sum() for k in range(3)], dy.dtype)
        )
        padded = np.pad(dy, ((0, 0), (1, 1), (0, 0)))
        return sum(w * padded[:, k : k + n] for k, w in enumerate(self.kernel.value))


@wrong((2, 5, 4))
class KernelNotFlipped(_Convolution):
    """A convolution whose kernel is not flipped going back."""


@wrong((2, 5, 4), moved=False, shows=at((2, 5, 4)), missed=True)
class KernelSymmetricWhenFresh(_Convolution):
    """The same, checked with its symmetric initial kernel."""


@wrong((2, 5, 4), shows=at((2, 6, 4)), missed=True)
class StrideFromTheEnd(nf.Layer):
    """Means of three tokens at a stride of two; going back windows are laid from the end."""

    def forward(self, x, context):
        starts = range(0, x.shape[1] - 2, 2)
        return np.stack([x[:, s : s + 3].mean(axis=1) for s in starts], axis=1), x.shape

    def backward(self, dy, cache, gradients):
        dx = np.zeros(cache, dy.dtype)
        for k in range(dy.shape[1]):
            end = cache[1] - 2 * (dy.shape[1] - 1 - k)
            dx[:, end - 3 : end] += dy[:, k : k + 1] / 3.0
        return dx


@wrong((2, 5, 4))
class RolledOn(nf.Layer):
    """Rolls the tokens by one, and the gradient in the same direction."""

    def forward(self, x, context):
        return np.roll(x, 1, axis=1) * x, x

    def backward(self, dy, cache, gradients):
        return dy * np.roll(cache, 1, axis=1) + np.roll(dy * cache, 1, axis=1)


@wrong((2, 4, 4), shows=at((2, 5, 4)), missed=True)
class RolledByHalf(nf.Layer):
    """Rolls by half the length, and back in the same direction: wrong for odd lengths."""

    def forward(self, x, context):
        return np.roll(x, x.shape[1] // 2, axis=1), None

    def backward(self, dy, cache, gradients):
        return np.roll(dy, dy.shape[1] // 2, axis=1)


@wrong((2, 5, 4))
class WindowsOverlap(nf.Layer):
    """Windows of three tokens; going back += into a strided view loses where they overlap."""

    def forward(self, x, context):
        return np.lib.stride_tricks.sliding_window_view(x, 3, axis=1) ** 2, x

    def backward(self, dy, cache, gradients):
        dx = np.zeros_like(cache)
        windows = np.lib.stride_tricks.sliding_window_view(dx, 3, axis=1, writeable=True)
        windows += 2.0 * dy * np.lib.stride_tricks.sliding_window_view(cache, 3, axis=1)
        return dx


def turn(x, direction=1.0):
    """Rotate pairs of features by an angle for each position."""
    n, h = x.shape[1], x.shape[2] // 2
    angle = direction * np.arange(n)[:, None] / 10.0 ** np.arange(h)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[..., :h], x[..., h:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


@wrong((2, 5, 4))
class RotatedOn(nf.Layer):
    """Rotary positions; the gradient is rotated in the same direction."""

    def forward(self, x, context):
        return turn(x), None

    def backward(self, dy, cache, gradients):
        return turn(dy)


@wrong((2, 1, 4), shows=at((2, 5, 4)), missed=True)
class RotatedOnByNothing(RotatedOn):
    """The same, checked with one token, whose angle is 0."""


@wrong((1, 5, 2), shows=at((1, 12, 2)), missed=True)
class FarDistances(nf.Layer):
    """A learned weight for each distance, one for all above 8; those get no gradient."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.zeros(9, dtype))

    def forward(self, x, context):
        n = np.arange(x.shape[1])
        far = abs(n[:, None] - n)
        return self.weight.value[np.minimum(far, 8)] @ x, (x, far)

    def backward(self, dy, cache, gradients):
        x, far = cache
        dT = (dy @ x.swapaxes(1, 2)).sum(axis=0)
        d = [dT[far == k].sum() for k in range(9)]
        gradients.add(self.weight, np.array(d, dy.dtype))
        return self.weight.value[np.minimum(far, 8)].T @ dy
