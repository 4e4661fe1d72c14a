"""Right layers at corners, ties and steps, and of huge, tiny and curved numbers."""

import numpy as np

import npformer as nf
from tests.proof.layers_of_others.cases import normal, right


@right(np.array([[[-1.0, 0.0, 2.0, 0.0]]]))
class CornerAtZero(nf.Layer):
    """ReLU at 0 itself, with slope 0 there."""

    def forward(self, x, context):
        return np.where(x > 0, x, 0.0), x > 0

    def backward(self, dy, cache, gradients):
        return dy * cache


@right(np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]]))
class TiesShare(nf.Layer):
    """The maximum over tokens, at a tie, whose gradient is shared equally."""

    def forward(self, x, context):
        y = x.max(axis=1)
        tied = x == y[:, None]
        return y, (tied / tied.sum(axis=1, keepdims=True)).astype(x.dtype)

    def backward(self, dy, cache, gradients):
        return dy[:, None] * cache


@right((2, 5, 4))
class OneHot(nf.Layer):
    """Which feature is the largest: steps, so the gradient is 0."""

    def forward(self, x, context):
        return (x == x.max(axis=-1, keepdims=True)).astype(x.dtype), None

    def backward(self, dy, cache, gradients):
        return np.zeros_like(dy)


@right((2, 5, 4))
class Independent(nf.Layer):
    """Returns positions alone, so dx is None."""

    def forward(self, x, context):
        return np.zeros_like(x) + np.arange(x.shape[1], dtype=x.dtype)[:, None], None

    def backward(self, dy, cache, gradients):
        return None


@right(np.array([[[0.0, 1e-3, -0.5, 2.0]]]))
class NearlyACorner(nf.Layer):
    """The root of x^2 + 1e-8: smooth, and at 0 bent within 1e-4."""

    def forward(self, x, context):
        y = (x * x + 1e-8) ** 0.5
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        return dy * x / y


@right((2, 3, 4))
class FastWaves(nf.Layer):
    """sin(1000 x) / 1000, which bends within 1e-3."""

    def forward(self, x, context):
        return np.sin(1000.0 * x) / 1000.0, x

    def backward(self, dy, cache, gradients):
        return dy * np.cos(1000.0 * cache)


@right((2, 5, 4))
class Cancelled(nf.Layer):
    """The sum of a softmax: 1 whatever x is, so dx is 0 but for rounding."""

    def forward(self, x, context):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return p.sum(axis=-1), p

    def backward(self, dy, cache, gradients):
        return cache * (dy[..., None] - (dy[..., None] * cache).sum(axis=-1, keepdims=True))


@right(np.zeros((1, 3, 4)))
class FlatAtZero(nf.Layer):
    """x^4 at 0, where value and slope are 0."""

    def forward(self, x, context):
        return x**4, x

    def backward(self, dy, cache, gradients):
        return 4.0 * dy * cache**3


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


@right(normal(2, 5, 4, scale=1e-8))
class TinyInputs(nf.Layer):
    """tanh(1e8 x) for x around 1e-8."""

    def forward(self, x, context):
        y = np.tanh(1e8 * x)
        return y, y

    def backward(self, dy, cache, gradients):
        return dy * 1e8 * (1.0 - cache**2)


@right(normal(2, 5, 4, scale=1e6))
class HugeInputs(nf.Layer):
    """tanh(1e-6 x) for x around 1e6."""

    def forward(self, x, context):
        y = np.tanh(1e-6 * x)
        return y, y

    def backward(self, dy, cache, gradients):
        return dy * 1e-6 * (1.0 - cache**2)


@right((2, 5, 4))
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


@right(np.random.default_rng(0).uniform(0.1, 0.9, size=(2, 3, 4)))
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
class LogDeterminant(nf.Layer):
    """log det(x x^T + 1), from a Cholesky factor, which has no complex form."""

    def forward(self, x, context):
        a = x @ x.swapaxes(1, 2) + np.eye(x.shape[1], dtype=x.dtype)
        factor = np.linalg.cholesky(a)
        return 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1), (x, a)

    def backward(self, dy, cache, gradients):
        x, a = cache
        return 2.0 * dy[:, None, None] * np.linalg.inv(a) @ x


@right((3,), (3,))
def a_scalar_of_vectors():
    """A pair of functions of vectors, which returns one number."""

    def forward(a, b):
        return (a * np.sin(b)).sum(), (a, b)

    def backward(dy, cache):
        a, b = cache
        return dy * np.sin(b), dy * a * np.cos(b)

    return forward, backward
