"""Wrong gradients of parameters: set, forgotten, nearly right; and parameters that change."""

import numpy as np

import npformer as nf
from tests.proof.layers_of_others.cases import wrong

ROWS = "bli,blj->ij"


class Square(nf.Layer):
    """y = tanh(x W), the base of mistakes."""

    def __init__(self, d=4):
        self.weight = nf.Parameter(np.eye(d))

    def forward(self, x, context):
        y = np.tanh(x @ self.weight.value)
        return y, (x, y)

    def backward(self, dy, cache, gradients):
        x, y = cache
        dz = dy * (1.0 - y * y)
        gradients.add(self.weight, np.einsum(ROWS, x, dz))
        return dz @ self.weight.value.T


@wrong((2, 5, 4))
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
class NearlyOne(Square):
    """Gradients 2e-7 too large."""

    def backward(self, dy, cache, gradients):
        return super().backward(dy * (1.0 + 2e-7), cache, gradients)


@wrong((2, 5, 4))
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

    def __init__(self, d=4):
        super().__init__(d)
        self.bias = nf.Parameter(np.zeros(d))

    def backward(self, dy, cache, gradients):
        gradients.add(self.bias, dy.sum(axis=(0, 1)))
        return super().backward(dy, cache, gradients)


@wrong((2, 5, 4))
class NormalizesGoingBack(Square):
    """Going back it makes the rows of its weight unit vectors, for the next time."""

    def backward(self, dy, cache, gradients):
        dx = super().backward(dy, cache, gradients)
        w = self.weight.value
        w /= (w * w).sum(axis=1, keepdims=True) ** 0.5
        return dx


@wrong((2, 5, 4))
class RunningMeanAtEvaluation(nf.Layer):
    """Its running mean, a constant, moves with each call, even at evaluation."""

    def __init__(self, d=4):
        self.mean = nf.Parameter(np.zeros(d), trainable=False)

    def forward(self, x, context):
        self.mean.value[...] = 0.9 * self.mean.value + 0.1 * x.mean(axis=(0, 1)).real
        return (x - self.mean.value) ** 2, x - self.mean.value

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache
