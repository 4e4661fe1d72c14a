"""Gradients of parameters: overwritten, shared, frozen, nearly right, hidden by initial values."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, wrong
from benchmarks.gradcheck_layers.rules import (
    changes_parameters,
    forward_differs,
    frozen_fails,
    overwrites_gradients,
)

ROWS = "bli,blj->ij"


class Square(nf.Layer):
    """y = tanh(x W), the base of mistakes."""

    def __init__(self, d=4, dtype="float64"):
        self.weight = nf.Parameter(np.eye(d, dtype=dtype))

    def forward(self, x, context):
        y = np.tanh(x @ self.weight.value)
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        gradients.add(self.weight, np.einsum(ROWS, x, dz))
        return dz @ self.weight.value.T


@wrong((2, 5, 4), shows=overwrites_gradients)
class Overwrites(Square):
    """The gradient of the weight is set, not added."""

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        gradients.of(self.weight)[...] = np.einsum(ROWS, x, dz)
        return dz @ self.weight.value.T


@wrong((2, 5, 4))
class OneUseOfTwo(Square):
    """A weight applied twice, y = tanh(x W) W; the second use adds nothing."""

    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return y @ self.weight.value, cache

    def backward(self, dy, cache, gradients):
        return super().backward(dy @ self.weight.value.T, cache, gradients)


@wrong((2, 5, 4))
class TiedNotTransposed(Square):
    """A tied weight, y = tanh(x W) W^T; the gradient of the second use is not transposed."""

    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return y @ self.weight.value.T, cache

    def backward(self, dy, cache, gradients):
        gradients.add(self.weight, np.einsum(ROWS, cache[1], dy))
        return super().backward(dy @ self.weight.value, cache, gradients)


@wrong((2, 5, 4), shows=frozen_fails, elsewhere=True, missed=True)
class CannotBeFrozen(Square):
    """Adds to gradients.of(weight), which does not exist once the weight is frozen."""

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        total = gradients.of(self.weight)
        total += np.einsum(ROWS, x, dz)
        return dz @ self.weight.value.T


@wrong((2, 5, 4))
class NearlyOne(Square):
    """Gradients 2e-7 too large."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy * (1.0 + 2e-7), cache, gradients)


@wrong((2, 5, 4), missed=True)
class NearlyOneInRealNumbers(nf.Layer):
    """Gradients 2e-7 too large, and a forward pass that has no complex form."""

    def forward(self, x, context):
        return np.hypot(x, 1.0), x

    def backward(self, dy, cache, gradients):
        return dy * (1.0 + 2e-7) * cache / np.hypot(cache, 1.0)


@wrong((2, 5, 4))
class DecaysItsWeight(Square):
    """Weight decay of 1e-4 hidden in the gradient."""

    def backward(self, dy, cache, gradients):
        gradients.add(self.weight, 1e-4 * self.weight.value)
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4))
class BiasOfNothing(Square):
    """The bias was taken out of the forward pass, and still gets a gradient."""

    def __init__(self, d=4, dtype="float64"):
        super().__init__(d, dtype)
        self.bias = nf.Parameter(np.zeros(d, dtype))

    def backward(self, dy, cache, gradients):
        gradients.add(self.bias, dy.sum(axis=(0, 1)))
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4), shows=changes_parameters)
class NormalizesGoingBack(Square):
    """Going back it makes the rows of its weight unit vectors, for the next time."""

    def backward(self, dy, cache, gradients):
        dx = super().backward(dy, cache, gradients)
        w = self.weight.value
        w /= (w * w).sum(axis=1, keepdims=True) ** 0.5
        return dx


@wrong((2, 5, 4), shows=forward_differs)
class RunningMeanAtEvaluation(nf.Layer):
    """Its running mean, a constant, moves with each call, even at evaluation."""

    def __init__(self, d=4, dtype="float64"):
        self.mean = nf.Parameter(np.zeros(d, dtype), trainable=False)

    def forward(self, x, context):
        self.mean.value[...] = 0.9 * self.mean.value + 0.1 * x.mean(axis=(0, 1)).real
        return (x - self.mean.value) ** 2, x - self.mean.value

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


@wrong((2, 5, 4))
class SwapsGammaAndBeta(nf.Layer):
    """Each of gamma and beta gets the other's gradient."""

    def __init__(self, d=4, dtype="float64"):
        self.gamma = nf.Parameter(np.ones(d, dtype))
        self.beta = nf.Parameter(np.zeros(d, dtype))

    def forward(self, x, context):
        return x * self.gamma.value + self.beta.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.beta, (dy * cache).sum(axis=(0, 1)))
        gradients.add(self.gamma, dy.sum(axis=(0, 1)))
        return dy * self.gamma.value


@wrong((2, 5, 4))
class InnerLayerTwice(nf.Layer):
    """Goes back through its inner layer twice, once for the weights and once for dx."""

    def __init__(self, dtype="float64"):
        self.inner = Square(dtype=dtype)

    def forward(self, x, context):
        return self.inner.forward(x, context)

    def backward(self, dy, cache, gradients):
        self.inner.backward(dy, cache, gradients)
        return self.inner.backward(dy, cache, gradients)


class _LowRank(nf.Layer):
    """y = x + x A B with B = 0 at first; the gradient of A is wrong by a factor."""

    def __init__(self, dtype="float64"):
        rng = np.random.default_rng(0)
        self.a = nf.Parameter(rng.normal(size=(4, 2)).astype(dtype))
        self.b = nf.Parameter(np.zeros((2, 4), dtype))

    def forward(self, x, context):
        return x + x @ self.a.value @ self.b.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.b, self.a.value.T @ np.einsum(ROWS, cache, dy))
        gradients.add(self.a, 2.0 * np.einsum(ROWS, cache, dy) @ self.b.value.T)
        return dy + dy @ self.b.value.T @ self.a.value.T


@wrong((2, 5, 4))
class LowRank(_LowRank):
    """y = x + x A B; the gradient of A is twice too large."""


@wrong((2, 5, 4), moved=False, shows=at((2, 5, 4)), missed=True)
class LowRankWhenFresh(_LowRank):
    """The same, checked with its initial B = 0."""


@wrong((2, 5, 4), moved=False, shows=at((2, 5, 4)), missed=True)
class ResidualOfZero(nf.Layer):
    """y = x + alpha tanh(x) with alpha = 0 at first, which hides that dx misses the branch."""

    def __init__(self, dtype="float64"):
        self.alpha = nf.Parameter(np.zeros((), dtype))

    def forward(self, x, context):
        t = np.tanh(x)
        return x + self.alpha.value * t, t

    def backward(self, dy, cache, gradients):
        gradients.add(self.alpha, (dy * cache).sum())
        return dy


@wrong((2, 5, 4))
class AddsToACopy(Square):
    """Adds to the gradient through reshape of a transpose, which is a copy."""

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        flat = gradients.of(self.weight).T.reshape(-1)
        flat += np.einsum(ROWS, x, dz).T.reshape(-1)
        return dz @ self.weight.value.T


@wrong((2, 5, 4))
class LastGroup(nf.Layer):
    """Features in groups with a matrix each; the loop over gradients stops one early."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.ones((2, 2, 2), dtype))

    def forward(self, x, context):
        g = x.reshape(*x.shape[:2], 2, 2)
        return np.einsum("blgi,gij->blgj", g, self.weight.value).reshape(x.shape), g

    def backward(self, dy, cache, gradients):
        dg = dy.reshape(cache.shape)
        dW = np.zeros_like(self.weight.value)
        for k in range(len(dW) - 1):
            dW[k] = np.einsum(ROWS, cache[:, :, k], dg[:, :, k])
        gradients.add(self.weight, dW)
        return np.einsum("blgj,gij->blgi", dg, self.weight.value).reshape(dy.shape)
