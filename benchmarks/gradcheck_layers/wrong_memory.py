"""Arrays kept between calls, changed in place, overwritten, or right for only one layout."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers import rules
from benchmarks.gradcheck_layers.cases import wrong
from benchmarks.gradcheck_layers.differences import complex_disagrees

MASK = np.arange(5) < np.array([[5], [3]])


class Cube(nf.Layer):
    """y = x^3, the base of mistakes."""

    def forward(self, x, context):
        return x**3, x

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2


@wrong((2, 5, 4), shows=rules.changes_x)
class CubesInPlace(nf.Layer):
    """Saves an array: y takes the place of x."""

    def forward(self, x, context):
        before = x.copy()
        x *= before * before
        return x, before

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2


@wrong((2, 5, 4), shows=rules.second_forward_spoils)
class OneWorkspace(Cube):
    """Keeps x in one workspace, which the next call fills."""

    def __init__(self):
        self._space = {}

    def forward(self, x, context):
        space = self._space.setdefault((x.shape, x.dtype), np.empty_like(x))
        space[...] = x
        return x**3, space


@wrong((2, 5, 4), shows=rules.results_are_overwritten)
class ReturnsItsWorkspace(Cube):
    """Its y is a workspace that the next call fills; the cache is right."""

    def __init__(self):
        self._space = {}

    def forward(self, x, context):
        y = self._space.setdefault((x.shape, x.dtype), np.empty_like(x))
        y[...] = x**3
        return y, x.copy()


@wrong((2, 5, 4), shows=rules.results_are_overwritten)
class ReturnsItsGradientsWorkspace(Cube):
    """Its dx is a workspace that the next backward pass fills."""

    def __init__(self):
        self._space = {}

    def backward(self, dy, cache, gradients):
        dx = self._space.setdefault((dy.shape, dy.dtype), np.empty_like(dy))
        dx[...] = super().backward(dy, cache, gradients)
        return dx


@wrong((2, 5, 4), shows=rules.changes_dy)
class WritesThroughAView(Cube):
    """Multiplies dy.reshape(-1, d) in place: a view, so dy changes."""

    def backward(self, dy, cache, gradients):
        rows = dy.reshape(-1, dy.shape[-1])
        rows *= (3.0 * cache**2).reshape(rows.shape)
        return rows.reshape(dy.shape)


@wrong((2, 5, 4), shows=rules.changes_dy_in_fortran_order)
class WritesIntoFortranOrder(Cube):
    """Works on np.asfortranarray(dy), a copy unless dy is in that order already."""

    def backward(self, dy, cache, gradients):
        g = np.asfortranarray(dy)
        g *= 3.0 * cache**2
        return g


@wrong((2, 5, 4), shows=rules.depends_on_layout)
class FlattensInMemoryOrder(Cube):
    """Flattens dy in the order of its memory."""

    def backward(self, dy, cache, gradients):
        return (3.0 * dy.ravel(order="K") * cache.ravel() ** 2).reshape(dy.shape)


@wrong((2, 5, 4), shows=rules.changes_dy)
class ResidualIntoDy(Cube):
    """y = x + x^3; dx begins as dy itself, and the branch is added to it."""

    def forward(self, x, context):
        return x + x**3, x

    def backward(self, dy, cache, gradients):
        dx = dy
        dx += 3.0 * dy * cache**2
        return dx


def length_is_remembered(case):
    """Whether another length after the first one gives what a fresh layer does not."""
    used, fresh = case.build(), case.build()
    used.forward(np.ones((1, 5, 4)), nf.Context())
    x = np.ones((1, 3, 4))
    return not np.allclose(*(each.forward(x, nf.Context())[0] for each in (used, fresh)))


@wrong((2, 5, 4), shows=length_is_remembered, elsewhere=True, missed=True)
class FirstLength(nf.Layer):
    """Divides by the length of the first call, which it remembers."""

    def __init__(self):
        self._length = None

    def forward(self, x, context):
        self._length = self._length or x.shape[1]
        return x.sum(axis=1) / self._length, (x.shape, self._length)

    def backward(self, dy, cache, gradients):
        shape, length = cache
        return np.broadcast_to(dy[:, None] / length, shape)


@wrong((2, 5, 4), shows=rules.second_backward_differs)
class EmptiesItsCache(nf.Layer):
    """Takes its cache apart with pop, so that a second backward pass raises IndexError."""

    def forward(self, x, context):
        return x**3, [x]

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache.pop() ** 2


@wrong((2, 5, 4), shows=rules.second_backward_differs)
class MultipliesItsCache(nf.Layer):
    """Computes dx in the array of its cache, so that a second backward pass is wrong."""

    def forward(self, x, context):
        return x**3, 3.0 * x**2

    def backward(self, dy, cache, gradients):
        cache *= dy
        return cache


@wrong((2, 5, 4), shows=rules.forward_differs)
class PowerIteration(nf.Layer):
    """Divides by a matrix norm that one more step of an iteration approximates at each call."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.eye(4, dtype=dtype))
        self._u = np.ones(4)

    def forward(self, x, context):
        w = self.weight.value.real
        self._u = w @ self._u / np.linalg.norm(w @ self._u)
        return x / float(np.linalg.norm(w.T @ self._u)), float(np.linalg.norm(w.T @ self._u))

    def backward(self, dy, cache, gradients):
        return dy / cache


SHARED = {}


@wrong((2, 5, 4), shows=rules.second_forward_spoils)
class KeyedByShape(Cube):
    """Keeps x in a dictionary of the module, under its shape."""

    def forward(self, x, context):
        SHARED[x.shape] = x.copy()
        return x**3, x.shape

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * SHARED[cache] ** 2


@wrong((2, 5, 4), shows=rules.changes_mask, mask=MASK)
class KeepsTheLastToken(Cube):
    """Makes sure that no row of the mask is empty, in the caller's mask."""

    def forward(self, x, context):
        context.mask[:, -1] = True
        return super().forward(x * context.mask[..., None], context)

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4), shows=rules.float32_differs)
class WidensDx(Cube):
    """Multiplies by a table in float64, so that dx of float32 is float64."""

    def backward(self, dy, cache, gradients):
        return np.full(dy.shape[-1], 3.0) * dy * cache**2


@wrong((2, 5, 4), shows=rules.float32_differs)
class HalvesInFloat32(Cube):
    """Sums in float16 to save memory, unless it computes in float64."""

    def backward(self, dy, cache, gradients):
        short = dy.astype("float16") if dy.dtype == np.float32 else dy
        return (3.0 * short * cache.astype(short.dtype) ** 2).astype(dy.dtype)


@wrong((2, 5, 4), shows=complex_disagrees)
class SinglePrecisionDx(Cube):
    """Writes dx into an array of float32 and widens it."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, gradients).astype("float32").astype(dy.dtype)


@wrong(
    (2, 5, 4),
    shows=lambda case: rules.float32_differs(case, far_away()),
    elsewhere=True,
    missed=True,
)
class VarianceFarFromZero(nf.Layer):
    """Going back the variance is E x^2 - (E x)^2, of which float32 leaves nothing far from 0."""

    def forward(self, x, context):
        c = x - x.mean(axis=-1, keepdims=True)
        r = ((c * c).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5
        return c / r, (x, c / r)

    def backward(self, dy, cache, gradients):
        x, n = cache
        var = (x * x).mean(axis=-1, keepdims=True) - x.mean(axis=-1, keepdims=True) ** 2
        g = dy - n * (dy * n).mean(axis=-1, keepdims=True)
        return (g - g.mean(axis=-1, keepdims=True)) / (abs(var) + 1e-5) ** 0.5


def far_away():
    """Return inputs around 1,000."""
    return [1000.0 + np.random.default_rng(0).normal(size=(2, 5, 4))]
