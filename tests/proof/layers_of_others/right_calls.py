"""Right layers with unusual parameters, inputs, memory, randomness and refusals."""

import copy

import numpy as np

import npformer as nf
from tests.proof.layers_of_others.cases import normal, right

MASK = np.arange(5) < np.array([[5], [3]])


class Square(nf.Layer):
    """y = tanh(x W)."""

    def __init__(self, d=4):
        self.weight = nf.Parameter(np.eye(d))

    def forward(self, x, context):
        y = np.tanh(x @ self.weight.value)
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        gradients.add(self.weight, np.einsum("bli,blj->ij", x, dz))
        return dz @ self.weight.value.T


@right((2, 5, 4))
class Unused(Square):
    """A parameter that nothing uses."""

    def __init__(self, d=4):
        super().__init__(d)
        self.spare = nf.Parameter(np.zeros(3))


@right((2, 5, 4))
class Empty(Square):
    """A parameter without entries."""

    def __init__(self, d=4):
        super().__init__(d)
        self.none = nf.Parameter(np.zeros((0, d)))

    def backward(self, dy, cache, gradients):
        gradients.add(self.none, np.zeros((0, 4), dy.dtype))
        return super().backward(dy, cache, gradients)


@right((2, 5, 4))
class Scalar(nf.Layer):
    """A parameter of shape ()."""

    def __init__(self):
        self.scale = nf.Parameter(np.ones(()))

    def forward(self, x, context):
        return x**2 * self.scale.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.scale, (dy * cache**2).sum())
        return 2.0 * dy * cache * self.scale.value


@right((2, 5, 4))
class Constant(Square):
    """A table that is no trained parameter, and to which backward adds all the same."""

    def __init__(self, d=4):
        super().__init__(d)
        self.table = nf.Parameter(np.arange(float(d)), trainable=False)

    def forward(self, x, context):
        return super().forward(x * self.table.value, context)

    def backward(self, dy, cache, gradients):
        d = super().backward(dy, cache, gradients)
        gradients.add(self.table, d.sum(axis=(0, 1)))
        return d * self.table.value


@right((2, 5, 4))
class InnerTwice(nf.Layer):
    """One inner layer, applied twice."""

    def __init__(self):
        self.inner = Square()

    def forward(self, x, context):
        y, one = self.inner.forward(x, context)
        y, two = self.inner.forward(y, context)
        return y, (one, two)

    def backward(self, dy, cache, gradients):
        for each in reversed(cache):
            dy = self.inner.backward(dy, each, gradients)
        return dy


@right(np.array([[3, 7, 3], [7, 7, 0]]))
class RepeatedIds(nf.Layer):
    """An embedding of repeated ids."""

    def __init__(self):
        self.table = nf.Parameter(np.zeros((12, 3)))

    def forward(self, x, context):
        return self.table.value[x], x

    def backward(self, dy, cache, gradients):
        np.add.at(gradients.of(self.table), cache, dy)


@right((2, 5, 4), np.array([[0, 1, 1], [4, 4, 2]]))
def gather():
    """Rows chosen by whole numbers, repeated ones, which have no gradient."""

    def forward(x, where):
        return x[np.arange(len(x))[:, None], where] ** 2, (x, where)

    def backward(dy, cache):
        x, where = cache
        rows = np.arange(len(x))[:, None]
        dx = np.zeros_like(x)
        np.add.at(dx, (rows, where), 2.0 * dy * x[rows, where])
        return dx

    return forward, backward


@right((2, 5, 4), np.array([True, False, True, True]))
def keeps_features():
    """Features chosen by a bool array."""

    def forward(x, keep):
        return np.exp(x[..., keep]), (x, keep)

    def backward(dy, cache):
        x, keep = cache
        dx = np.zeros_like(x)
        dx[..., keep] = dy * np.exp(x[..., keep])
        return dx

    return forward, backward


@right((2, 5, 4))
class RefusesFloat32(Square):
    """Refuses anything but float64."""

    def forward(self, x, context):
        if x.dtype == np.float32:
            raise TypeError("x is float32; expected float64")
        return super().forward(x, context)


@right((2, 5, 4), (2, 3, 2), mask=(MASK, None))
class OneInputUnused(nf.TwoInputLayer):
    """Two inputs, of which the second has no influence: its gradient is None."""

    def forward(self, a, b, context):
        return np.sin(a) * context.mask[..., None], (a, context.mask)

    def backward(self, dy, cache, gradients):
        a, mask = cache
        return dy * mask[..., None] * np.cos(a), None


@right(normal(1, 1, 1))
class OneNumber(Scalar):
    """A batch of one token with one feature."""


@right((3, 5, 8))
class ManyEntries(Square):
    """More entries than are checked one by one."""

    def __init__(self, d=8):
        super().__init__(d)


MASK = np.arange(5) < np.array([[5], [3]])


@right((2, 5, 4))
class Identity(nf.Layer):
    """Returns x itself, and dy itself."""

    def forward(self, x, context):
        return x, None

    def backward(self, dy, cache, gradients):
        return dy


@right((2, 5, 4))
class ReadOnly(nf.Layer):
    """The mean, whose dx is a view that cannot be written to."""

    def forward(self, x, context):
        return x.mean(axis=1), x.shape

    def backward(self, dy, cache, gradients):
        return np.broadcast_to(dy[:, None] / cache[1], cache)


@right((2, 5, 4))
class Fortran(nf.Layer):
    """Returns y and dx in Fortran order."""

    def forward(self, x, context):
        return np.asfortranarray(np.sin(x)), x

    def backward(self, dy, cache, gradients):
        return np.asfortranarray(dy * np.cos(cache))


@right((2, 5, 4))
class RemembersTables(nf.Layer):
    """Keeps a table for each length and dtype, made at the first call."""

    def __init__(self):
        self._tables = {}

    def table(self, x):
        key = x.shape[1], x.real.dtype
        if key not in self._tables:
            self._tables[key] = np.cos(np.arange(x.shape[1]))[:, None].astype(key[1])
        return self._tables[key]

    def forward(self, x, context):
        return np.sin(x * self.table(x)), x

    def backward(self, dy, cache, gradients):
        t = self.table(cache)
        return dy * np.cos(cache * t) * t


class Dropout(nf.Layer):
    """Dropout that recomputes its mask from a copy of the generator each time."""

    def keep(self, x, generator):
        return (copy.deepcopy(generator).random(x.shape) >= 0.3) / 0.7

    def forward(self, x, context):
        kept = copy.deepcopy(context.generator)
        keep = self.keep(x, kept).astype(x.real.dtype)
        context.generator.random(x.shape)
        return x**2 * keep, (x, kept)

    def backward(self, dy, cache, gradients):
        x, kept = cache
        return 2.0 * x * dy * self.keep(x, kept).astype(dy.dtype)


@right((2, 5, 4), training=True)
class Recomputes(Dropout):
    """Dropout with the given generator, recomputed from a copy of its state."""


@right((2, 5, 4), training=True)
class Shuffles(nf.Layer):
    """A random order of the tokens in training, drawn from the given generator."""

    def forward(self, x, context):
        order = context.generator.permutation(x.shape[1])
        return x[:, order] ** 2, (x, order)

    def backward(self, dy, cache, gradients):
        x, order = cache
        dx = np.empty_like(dy)
        dx[:, order] = 2.0 * dy * x[:, order]
        return dx


@right((2, 4, 4))
class RefusesOddLengths(nf.Layer):
    """Pairs of tokens, which refuses an odd length."""

    def forward(self, x, context):
        if x.shape[1] % 2:
            raise ValueError(f"x has length {x.shape[1]}; expected an even one")
        return x[:, ::2] * x[:, 1::2], x

    def backward(self, dy, cache, gradients):
        dx = np.empty_like(cache)
        dx[:, ::2], dx[:, 1::2] = dy * cache[:, 1::2], dy * cache[:, ::2]
        return dx
