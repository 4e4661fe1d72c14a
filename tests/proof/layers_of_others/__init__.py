"""Wrong and right layers by people who did not write gradcheck.

Central differences of their own had judged them before (at commit 20f91e5);
benchmarks/results/gradcheck_layers.md has all 176 verdicts.
"""

import numpy as np

import npformer as nf

SHAPE = 2, 5, 4
MASK = np.arange(5) < np.array([[5], [3]])
TIES = np.array([[[1.0], [1.0], [0.0], [2.0], [2.0]]])


class Formula(nf.Layer):
    """A layer of two functions: y, cache = forward(x); dx = backward(dy, cache)."""

    def __init__(self, forward, backward):
        self.passes = forward, backward

    def forward(self, x, context):
        return self.passes[0](x)

    def backward(self, dy, cache, gradients):
        return self.passes[1](dy, cache)


def entrywise(f, slope):
    return Formula(lambda x: (f(x), x), lambda dy, x: dy * slope(x))


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
