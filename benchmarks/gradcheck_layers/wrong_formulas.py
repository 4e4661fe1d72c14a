"""Norms, attention, gates, complex numbers, and derivatives that are approximations."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, wrong
from benchmarks.gradcheck_layers.differences import complex_disagrees


def softmax(s):
    """Return the softmax of the last axis."""
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward(dp, p, axis=-1):
    """Return ds."""
    return p * (dp - (dp * p).sum(axis=axis, keepdims=True))


@wrong((2, 3, 4))
class OtherGroups(nf.Layer):
    """Group norm of neighbours going forward, and of every second feature going back."""

    def forward(self, x, context):
        g = x.reshape(*x.shape[:2], 2, 2)
        r = ((g * g).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5
        return (g / r).reshape(x.shape), x

    def backward(self, dy, cache, gradients):
        g, d = (each.reshape(*dy.shape[:2], 2, 2).swapaxes(2, 3) for each in (cache, dy))
        r = ((g * g).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5
        n = g / r
        return ((d - n * (d * n).mean(axis=-1, keepdims=True)) / r).swapaxes(2, 3).reshape(dy.shape)


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


@wrong((2, 3, 4), shows=complex_disagrees)
class TinyEpsElsewhere(_Rms):
    """The same with eps = 1e-8."""

    eps = 1e-8


@wrong((2, 3, 4))
class UnbiasedDeviation(nf.Layer):
    """Layer norm with the deviation of d - 1; going back it is that of d."""

    def forward(self, x, context):
        c = x - x.mean(axis=-1, keepdims=True)
        r = ((c * c).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1) + 1e-5) ** 0.5
        return c / r, (c / r, r)

    def backward(self, dy, cache, gradients):
        n, r = cache
        d = dy - dy.mean(axis=-1, keepdims=True)
        return (d - n * (dy * n).mean(axis=-1, keepdims=True)) / r


@wrong((2, 3, 4))
class DirectionIsFree(nf.Layer):
    """Weight norm, W = g V / |V|; the gradient of V is not projected."""

    def __init__(self, dtype="float64"):
        self.v = nf.Parameter(np.eye(4, dtype=dtype))
        self.g = nf.Parameter(np.ones(4, dtype))

    def forward(self, x, context):
        size = (self.v.value**2).sum(axis=0) ** 0.5
        return x @ (self.v.value / size * self.g.value), (x, size)

    def backward(self, dy, cache, gradients):
        x, size = cache
        u = self.v.value / size
        dW = np.einsum("bli,blj->ij", x, dy)
        gradients.add(self.g, (dW * u).sum(axis=0))
        gradients.add(self.v, dW * self.g.value / size)
        return dy @ (u * self.g.value).T


class _Attention(nf.Layer):
    """y = softmax(x W x^T) x."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.eye(4, dtype=dtype))

    def forward(self, x, context):
        p = softmax(x @ self.weight.value @ x.swapaxes(1, 2))
        return p @ x, (x, p)

    def scores(self, dy, x, p):
        return softmax_backward(dy @ x.swapaxes(1, 2), p)

    def backward(self, dy, cache, gradients):
        x, p = cache
        ds = self.scores(dy, x, p)
        gradients.add(self.weight, np.einsum("bmi,bmn,bnj->ij", x, ds, x))
        w = self.weight.value
        return p.swapaxes(1, 2) @ dy + ds @ x @ w.T + ds.swapaxes(1, 2) @ x @ w


@wrong((2, 3, 4))
class KeysAreConstants(_Attention):
    """Attention of x to itself; dx misses what comes through the keys."""

    def backward(self, dy, cache, gradients):
        x, p = cache
        dx = super().backward(dy, cache, gradients)
        return dx - self.scores(dy, x, p).swapaxes(1, 2) @ x @ self.weight.value


@wrong((2, 3, 4))
class SoftmaxOfColumns(_Attention):
    """Attention; the sum in softmax's gradient runs over queries."""

    def scores(self, dy, x, p):
        return softmax_backward(dy @ x.swapaxes(1, 2), p, axis=-2)


@wrong((2, 5, 4), shows=at((1, 12, 4)), missed=True)
class ShorterWindow(_Attention):
    """Attention to the last 8 tokens; going back the window has 7."""

    def forward(self, x, context):
        n = np.arange(x.shape[1])
        far = n[:, None] - n
        s = x @ self.weight.value @ x.swapaxes(1, 2)
        p = softmax(np.where((far >= 0) & (far < 8), s, -1e9))
        return p @ x, (x, p)

    def backward(self, dy, cache, gradients):
        x, p = cache
        n = np.arange(x.shape[1])
        return super().backward(dy, (x, p * (n[:, None] - n < 7)), gradients)


@wrong((2, 5, 4), (2, 1, 5, 5), shows=at((2, 5, 4), (2, 2, 5, 5)), missed=True)
def bias_of_heads():
    """Attention of two heads with a bias for each sample; its gradient is one for all heads."""

    def forward(x, bias):
        h = x.reshape(*x.shape[:2], 2, 2).swapaxes(1, 2)
        p = softmax(h @ h.swapaxes(2, 3) + bias)
        return p @ h, (h, p, bias.shape)

    def backward(dy, cache):
        h, p, shape = cache
        ds = softmax_backward(dy @ h.swapaxes(2, 3), p)
        dh = p.swapaxes(2, 3) @ dy + ds @ h + ds.swapaxes(2, 3) @ h
        db = np.broadcast_to(ds.sum(axis=1, keepdims=True), shape)
        return dh.swapaxes(1, 2).reshape(dh.shape[0], -1, 4), db

    return forward, backward


@wrong((2, 5, 4))
class NormalizerIsConstant(nf.Layer):
    """Linear attention; the sum that it divides by is taken as a constant."""

    def forward(self, x, context):
        k = np.exp(x)
        return k * x.cumsum(axis=1) / k.cumsum(axis=1), x

    def backward(self, dy, cache, gradients):
        k = np.exp(cache)
        z = k.cumsum(axis=1)
        d = dy / z
        return (d * k)[:, ::-1].cumsum(axis=1)[:, ::-1] + d * k * cache.cumsum(axis=1)


@wrong((2, 5, 4))
class GateIsLinear(nf.Layer):
    """y = x sigmoid(x W); the sigmoid's slope is forgotten in the gradient of W and x."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.eye(4, dtype=dtype))

    def forward(self, x, context):
        s = 1.0 / (1.0 + np.exp(-x @ self.weight.value))
        return x * s, (x, s)

    def backward(self, dy, cache, gradients):
        x, s = cache
        dz = dy * x * s
        gradients.add(self.weight, np.einsum("bli,blj->ij", x, dz))
        return dy * s + dz @ self.weight.value.T


@wrong((2, 5, 4))
class NotConjugated(nf.Layer):
    """Tokens are convolved with a complex filter of frequencies, not conjugated going back."""

    def forward(self, x, context):
        return np.fft.ifft(np.fft.fft(x, axis=1) * self.filter(x), axis=1).real, None

    def filter(self, x):
        return np.exp(-1j * np.arange(x.shape[1]))[:, None]

    def backward(self, dy, cache, gradients):
        return np.fft.ifft(np.fft.fft(dy, axis=1) * self.filter(dy), axis=1).real


@wrong((2, 5, 4))
class SlopeOfAnotherGelu(nf.Layer):
    """GELU by x sigmoid(1.702 x), with the slope of the form with tanh."""

    def forward(self, x, context):
        return x / (1.0 + np.exp(-1.702 * x)), x

    def backward(self, dy, cache, gradients):
        c = (2.0 / np.pi) ** 0.5
        t = np.tanh(c * (cache + 0.044715 * cache**3))
        return dy * 0.5 * (1 + t + cache * (1 - t * t) * c * (1 + 3 * 0.044715 * cache**2))


@wrong((2, 5, 4), shows=complex_disagrees)
class DifferencesInside(nf.Layer):
    """Its slope is a difference quotient with a step of 3e-4, right to 1e-8."""

    def forward(self, x, context):
        return np.sin(x) * np.exp(-x), x

    def backward(self, dy, cache, gradients):
        one, two = (np.sin(z) * np.exp(-z) for z in (cache + 3e-4, cache - 3e-4))
        return dy * (one - two) / 6e-4
