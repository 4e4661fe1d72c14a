"""Arrays kept between calls, changed or overwritten; random numbers that do not repeat."""

import copy

import numpy as np

import npformer as nf
from tests.proof.layers_of_others.cases import wrong

MASK = np.arange(5) < np.array([[5], [3]])


class Cube(nf.Layer):
    """y = x^3, the base of mistakes."""

    def forward(self, x, context):
        return x**3, x

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2


@wrong((2, 5, 4))
class CubesInPlace(nf.Layer):
    """Saves an array: y takes the place of x."""

    def forward(self, x, context):
        before = x.copy()
        x *= before * before
        return x, before

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2


@wrong((2, 5, 4))
class OneWorkspace(Cube):
    """Keeps x in one workspace, which the next call fills."""

    def __init__(self):
        self._space = {}

    def forward(self, x, context):
        space = self._space.setdefault((x.shape, x.dtype), np.empty_like(x))
        space[...] = x
        return x**3, space


@wrong((2, 5, 4))
class ReturnsItsWorkspace(Cube):
    """Its y is a workspace that the next call fills; the cache is right."""

    def __init__(self):
        self._space = {}

    def forward(self, x, context):
        y = self._space.setdefault((x.shape, x.dtype), np.empty_like(x))
        y[...] = x**3
        return y, x.copy()


@wrong((2, 5, 4))
class ReturnsItsGradientsWorkspace(Cube):
    """Its dx is a workspace that the next backward pass fills."""

    def __init__(self):
        self._space = {}

    def backward(self, dy, cache, gradients):
        dx = self._space.setdefault((dy.shape, dy.dtype), np.empty_like(dy))
        dx[...] = super().backward(dy, cache, gradients)
        return dx


@wrong((2, 5, 4))
class WritesIntoFortranOrder(Cube):
    """Works on np.asfortranarray(dy), a copy unless dy is in that order already."""

    def backward(self, dy, cache, gradients):
        g = np.asfortranarray(dy)
        g *= 3.0 * cache**2
        return g


@wrong((2, 5, 4))
class FlattensInMemoryOrder(Cube):
    """Flattens dy in the order of its memory."""

    def backward(self, dy, cache, gradients):
        return (3.0 * dy.ravel(order="K") * cache.ravel() ** 2).reshape(dy.shape)


@wrong((2, 5, 4))
class EmptiesItsCache(nf.Layer):
    """Takes its cache apart with pop, so that a second backward pass raises IndexError."""

    def forward(self, x, context):
        return x**3, [x]

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache.pop() ** 2


@wrong((2, 5, 4))
class MultipliesItsCache(nf.Layer):
    """Computes dx in the array of its cache, so that a second backward pass is wrong."""

    def forward(self, x, context):
        return x**3, 3.0 * x**2

    def backward(self, dy, cache, gradients):
        cache *= dy
        return cache


@wrong((2, 5, 4))
class PowerIteration(nf.Layer):
    """Divides by a matrix norm that one more step of an iteration approximates at each call."""

    def __init__(self):
        self.weight = nf.Parameter(np.eye(4))
        self._u = np.ones(4)

    def forward(self, x, context):
        w = self.weight.value.real
        self._u = w @ self._u / np.linalg.norm(w @ self._u)
        return x / float(np.linalg.norm(w.T @ self._u)), float(np.linalg.norm(w.T @ self._u))

    def backward(self, dy, cache, gradients):
        return dy / cache


@wrong((2, 5, 4), mask=MASK)
class KeepsTheLastToken(Cube):
    """Makes sure that no row of the mask is empty, in the caller's mask."""

    def forward(self, x, context):
        context.mask[:, -1] = True
        return super().forward(x * context.mask[..., None], context)

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4))
class WidensDx(Cube):
    """Multiplies by a table in float64, so that dx of float32 is float64."""

    def backward(self, dy, cache, gradients):
        return np.full(dy.shape[-1], 3.0) * dy * cache**2


@wrong((2, 5, 4))
class HalvesInFloat32(Cube):
    """Sums in float16 to save memory, unless it computes in float64."""

    def backward(self, dy, cache, gradients):
        short = dy.astype("float16") if dy.dtype == np.float32 else dy
        return (3.0 * short * cache.astype(short.dtype) ** 2).astype(dy.dtype)


@wrong((2, 5, 4))
class SinglePrecisionDx(Cube):
    """Writes dx into an array of float32 and widens it."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients).astype("float32").astype(dy.dtype)


class Dropout(nf.Layer):
    """Dropout, the base of mistakes: entries kept with probability 1 - p, and scaled."""

    def __init__(self, p=0.3):
        self.p = p

    def forward(self, x, context):
        if not context.training:
            return x**2, (x, None)
        keep = context.generator.random(x.shape) >= self.p
        return x**2 * keep / (1.0 - self.p), (x, keep)

    def backward(self, dy, cache, gradients):
        x, keep = cache
        return 2.0 * x * dy * (1.0 if keep is None else keep / (1.0 - self.p))


@wrong((2, 5, 4), training=True)
class DrawsAgain(Dropout):
    """Draws a second mask going back."""

    def forward(self, x, context):
        y, (x, _) = super().forward(x, context)
        return y, (x, context.generator)

    def backward(self, dy, cache, gradients):
        x, generator = cache
        return super().backward(dy, (x, generator.random(x.shape) >= self.p), gradients)


@wrong((2, 5, 4), training=True)
class RewindsOnce(Dropout):
    """Recomputes with a copy of the generator, which a second backward pass finds used."""

    def forward(self, x, context):
        kept = copy.deepcopy(context.generator)
        return super().forward(x, context)[0], (x, nf.Context(context.training, kept))

    def backward(self, dy, cache, gradients):
        _, inner = super().forward(*cache)
        return super().backward(dy, inner, gradients)


@wrong((2, 5, 4), training=True)
class OwnGenerator(Dropout):
    """Draws from a generator of its own, so that a seed does not repeat a training."""

    def __init__(self, p=0.3):
        super().__init__(p)
        self._own = np.random.default_rng(0)

    def forward(self, x, context):
        return super().forward(x, nf.Context(context.training, self._own))


@wrong((2, 5, 4))
class NoiseAtEvaluation(nf.Layer):
    """Adds noise from NumPy's global generator, at evaluation too."""

    def forward(self, x, context):
        return (x + 0.1 * np.random.standard_normal(x.shape)) ** 2, x  # noqa: NPY002

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


@wrong((2, 5, 4))
class NoisyGradient(nf.Layer):
    """Adds noise of 1e-8 to dx, from a generator of its own."""

    def __init__(self):
        self._own = np.random.default_rng(0)

    def forward(self, x, context):
        return x**3, x

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2 + 1e-8 * self._own.normal(size=dy.shape)
