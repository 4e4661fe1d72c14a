"""Right layers with unusual parameters and inputs."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import normal, right

MASK = np.arange(5) < np.array([[5], [3]])


class Square(nf.Layer):
    """y = tanh(x W)."""

    def __init__(self, d=4, dtype="float64"):
        self.weight = nf.Parameter(np.eye(d, dtype=dtype))

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

    def __init__(self, d=4, dtype="float64"):
        super().__init__(d, dtype)
        self.spare = nf.Parameter(np.zeros(3, dtype))


@right((2, 5, 4))
class Empty(Square):
    """A parameter without entries."""

    def __init__(self, d=4, dtype="float64"):
        super().__init__(d, dtype)
        self.none = nf.Parameter(np.zeros((0, d), dtype))

    def backward(self, dy, cache, gradients):
        gradients.add(self.none, np.zeros((0, 4), dy.dtype))
        return super().backward(dy, cache, gradients)


@right((2, 5, 4))
class Scalar(nf.Layer):
    """A parameter of shape ()."""

    def __init__(self, dtype="float64"):
        self.scale = nf.Parameter(np.ones((), dtype))

    def forward(self, x, context):
        return x**2 * self.scale.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.scale, (dy * cache**2).sum())
        return 2.0 * dy * cache * self.scale.value


@right((2, 5, 4))
class Constant(Square):
    """A table that is no trained parameter, and to which backward adds all the same."""

    def __init__(self, d=4, dtype="float64"):
        super().__init__(d, dtype)
        self.table = nf.Parameter(np.arange(d).astype(dtype), trainable=False)

    def forward(self, x, context):
        return super().forward(x * self.table.value, context)

    def backward(self, dy, cache, gradients):
        d = super().backward(dy, cache, gradients)
        gradients.add(self.table, d.sum(axis=(0, 1)))
        return d * self.table.value


@right((2, 5, 4))
class InnerTwice(nf.Layer):
    """One inner layer, applied twice."""

    def __init__(self, dtype="float64"):
        self.inner = Square(dtype=dtype)

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

    def __init__(self, dtype="float64"):
        self.table = nf.Parameter(np.zeros((12, 3), dtype))

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

    def __init__(self, d=8, dtype="float64"):
        super().__init__(d, dtype)


@right((2, 5, 4))
class InverseSpectrum(nf.Layer):
    """A complex filter of frequencies, with its conjugate going back."""

    def __init__(self, dtype="float64"):
        self.angle = nf.Parameter(np.zeros(5, dtype))

    def forward(self, x, context):
        Z = np.fft.fft(x, axis=1) * np.exp(1j * self.angle.value)[:, None]
        return np.fft.ifft(Z, axis=1).real.astype(x.dtype), Z

    def backward(self, dy, cache, gradients):
        D = np.fft.fft(dy, axis=1)
        d = (D.conj() * 1j * cache).real.sum(axis=(0, 2)) / dy.shape[1]
        gradients.add(self.angle, d.astype(dy.dtype))
        dx = np.fft.ifft(D * np.exp(-1j * self.angle.value)[:, None], axis=1).real
        return dx.astype(dy.dtype)
