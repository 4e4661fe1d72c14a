"""Right layers whose numbers are huge, tiny, both, or results of long computations."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import normal, right


class _Scaled(nf.Layer):
    """y = c sin(x)."""

    c = 1.0

    def forward(self, x, context):
        return self.c * np.sin(x), x

    def backward(self, dy, cache, gradients):
        return dy * self.c * np.cos(cache)


@right((2, 5, 4))
class Huge(_Scaled):
    """y = 1e12 sin(x)."""

    c = 1e12


@right((2, 5, 4))
class Tiny(_Scaled):
    """y = 1e-12 sin(x)."""

    c = 1e-12


@right(normal(2, 5, 4, scale=1e-8), step=1e-12)
class TinyInputs(nf.Layer):
    """tanh(1e8 x) for x around 1e-8."""

    def forward(self, x, context):
        y = np.tanh(1e8 * x)
        return y, y

    def backward(self, dy, cache, gradients):
        return dy * 1e8 * (1.0 - cache**2)


@right(normal(2, 5, 4, scale=1e6), step=1.0)
class HugeInputs(nf.Layer):
    """tanh(1e-6 x) for x around 1e6."""

    def forward(self, x, context):
        y = np.tanh(1e-6 * x)
        return y, y

    def backward(self, dy, cache, gradients):
        return dy * 1e-6 * (1.0 - cache**2)


@right((2, 5, 4), step=100.0)
class Offset(nf.Layer):
    """x + 1e8, which leaves x eight digits."""

    def forward(self, x, context):
        return x + 1e8, None

    def backward(self, dy, cache, gradients):
        return dy.copy()


@right((2, 5, 4))
class ScalesApart(nf.Layer):
    """Each feature is a thousand times the last."""

    def forward(self, x, context):
        c = 1e3 ** np.arange(x.shape[-1], dtype="float32").astype(x.real.dtype)
        return np.sin(x) * c, (x, c)

    def backward(self, dy, cache, gradients):
        x, c = cache
        return dy * c * np.cos(x)


@right((2, 3, 4))
class SixtyLayers(nf.Layer):
    """x <- tanh(1.1 x), sixty times."""

    def forward(self, x, context):
        every = []
        for _ in range(60):
            x = np.tanh(1.1 * x)
            every.append(x)
        return x, every

    def backward(self, dy, cache, gradients):
        for y in reversed(cache):
            dy = 1.1 * dy * (1.0 - y * y)
        return dy


@right(np.random.default_rng(0).uniform(0.1, 0.9, size=(2, 3, 4)), step=1e-7)
class Chaos(nf.Layer):
    """The logistic map, ten times: slopes up to a thousand, and curved."""

    def forward(self, x, context):
        every = [x]
        for _ in range(10):
            every.append(4.0 * every[-1] * (1.0 - every[-1]))
        return every[-1], every

    def backward(self, dy, cache, gradients):
        for x in reversed(cache[:-1]):
            dy = dy * 4.0 * (1.0 - 2.0 * x)
        return dy


@right((2, 3, 3))
class Inverse(nf.Layer):
    """The inverse of x x^T + 1."""

    def forward(self, x, context):
        inverse = np.linalg.inv(x @ x.swapaxes(1, 2) + np.eye(x.shape[1], dtype=x.dtype))
        return inverse, (x, inverse)

    def backward(self, dy, cache, gradients):
        x, inverse = cache
        d = -inverse.swapaxes(1, 2) @ dy @ inverse.swapaxes(1, 2)
        return (d + d.swapaxes(1, 2)) @ x


@right((2, 3, 3))
class LogDeterminant(nf.Layer):
    """log det(x x^T + 1), from a Cholesky factor, which has no complex form."""

    def forward(self, x, context):
        a = x @ x.swapaxes(1, 2) + np.eye(x.shape[1], dtype=x.dtype)
        factor = np.linalg.cholesky(a)
        return 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1), (x, a)

    def backward(self, dy, cache, gradients):
        x, a = cache
        return 2.0 * dy[:, None, None] * np.linalg.inv(a) @ x


@right((2, 3, 4))
class FixedPoint(nf.Layer):
    """z = tanh(z / 2 + x), solved by sixty steps; its gradient is implicit."""

    def forward(self, x, context):
        z = np.zeros_like(x)
        for _ in range(60):
            z = np.tanh(0.5 * z + x)
        return z, z

    def backward(self, dy, cache, gradients):
        s = 1.0 - cache**2
        return dy * s / (1.0 - 0.5 * s)


@right((2, 4, 3))
class AllPaths(nf.Layer):
    """The log of a sum over all paths of tags, by a recursion; its gradient by going back."""

    def __init__(self, dtype="float64"):
        self.moves = nf.Parameter(np.zeros((3, 3), dtype))

    def forward(self, x, context):
        a, every = x[:, 0], [x[:, 0]]
        for t in range(1, x.shape[1]):
            s = a[:, :, None] + self.moves.value
            top = s.real.max(axis=1, keepdims=True)
            a = top[:, 0] + np.log(np.exp(s - top).sum(axis=1)) + x[:, t]
            every.append(a)
        top = a.real.max(axis=1, keepdims=True)
        return top[:, 0] + np.log(np.exp(a - top).sum(axis=1)), every

    def backward(self, dy, cache, gradients):
        e = np.exp(cache[-1] - cache[-1].max(axis=1, keepdims=True))
        da = dy[:, None] * e / e.sum(axis=1, keepdims=True)
        dx = [da]
        for a in reversed(cache[:-1]):
            s = a[:, :, None] + self.moves.value
            e = np.exp(s - s.max(axis=1, keepdims=True))
            ds = da[:, None] * e / e.sum(axis=1, keepdims=True)
            gradients.add(self.moves, ds.sum(axis=0))
            da = ds.sum(axis=2)
            dx.append(da)
        return np.stack(dx[::-1], axis=1)


@right((2, 3, 3))
class Balanced(nf.Layer):
    """Rows and columns divided by their sums, ten times, and back through each division."""

    def forward(self, x, context):
        y, every = np.exp(x), []
        for k in range(10):
            total = y.sum(axis=1 + k % 2, keepdims=True)
            every.append((y, total))
            y = y / total
        return y, every

    def backward(self, dy, cache, gradients):
        for k in reversed(range(10)):
            y, total = cache[k]
            dy = (dy - (dy * y).sum(axis=1 + k % 2, keepdims=True) / total) / total
        return dy * cache[0][0]


@right((2, 4, 3))
class Eigenvalues(nf.Layer):
    """The eigenvalues of x^T x, which has no complex form."""

    def forward(self, x, context):
        values, vectors = np.linalg.eigh(x.swapaxes(1, 2) @ x)
        return values, (x, vectors)

    def backward(self, dy, cache, gradients):
        x, u = cache
        return 2.0 * x @ (u * dy[:, None]) @ u.swapaxes(1, 2)


@right((3,), (3,))
def a_scalar_of_vectors():
    """A pair of functions of vectors, which returns one number."""

    def forward(a, b):
        return (a * np.sin(b)).sum(), (a, b)

    def backward(dy, cache):
        a, b = cache
        return dy * np.sin(b), dy * a * np.cos(b)

    return forward, backward
