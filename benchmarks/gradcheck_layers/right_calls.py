"""Right layers with unusual memory, randomness and refusals."""

import copy

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import right

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


@right((2, 5, 4), training=True)
class SometimesSkips(nf.Layer):
    """Stochastic depth that draws for each sample, and draws more only if one is kept."""

    def forward(self, x, context):
        keep = (context.generator.random((len(x), 1, 1)) >= 0.5).astype(x.real.dtype)
        noise = context.generator.normal() if keep.any() else 0.0
        return x + keep * np.sin(x) * float(noise), (x, keep * float(noise))

    def backward(self, dy, cache, gradients):
        x, factor = cache
        return dy + dy * factor * np.cos(x)


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


@right((2, 5, 4), mask=MASK)
class MasksOnceMore(nf.Layer):
    """Attention with padding at minus infinity, whose scores' gradient is masked again."""

    def forward(self, x, context):
        keep = context.mask[:, None]
        s = np.where(keep, x @ x.swapaxes(1, 2), -np.inf)
        e = np.where(keep, np.exp(s - s.real.max(axis=-1, keepdims=True)), 0.0)
        p = e / e.sum(axis=-1, keepdims=True)
        return p @ x, (x, p, keep)

    def backward(self, dy, cache, gradients):
        x, p, keep = cache
        dp = dy @ x.swapaxes(1, 2)
        ds = np.where(keep, p * (dp - (dp * p).sum(axis=-1, keepdims=True)), 0.0)
        return p.swapaxes(1, 2) @ dy + (ds + ds.swapaxes(1, 2)) @ x
