"""Dropout, noise and recomputation; mistakes that occur only in training."""

import copy

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers import rules
from benchmarks.gradcheck_layers.cases import at, wrong


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


class _InverseOfP(Dropout):
    """Going back it divides by p in place of 1 - p."""

    def backward(self, dy, cache, gradients):
        x, keep = cache
        return 2.0 * x * dy * (1.0 if keep is None else keep / self.p)


@wrong((2, 5, 4), training=True)
class DividesByP(_InverseOfP):
    """Dropout divides by p, not 1 - p, going back."""


@wrong((2, 5, 4), training=True, settings={"p": 0.5}, missed=True,
       shows=at((2, 5, 4), training=True))  # fmt: skip
class DividesByPOfOneHalf(_InverseOfP):
    """The same, checked with p = 0.5."""


@wrong((2, 5, 4), shows=at((2, 5, 4), training=True), missed=True)
class DividesByPAtEvaluation(_InverseOfP):
    """The same, checked at evaluation."""


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
class RecomputesWithOtherNumbers(Dropout):
    """Keeps x alone and runs forward again going back, with the generator where it is then."""

    def forward(self, x, context):
        return super().forward(x, context)[0], (x, context)

    def backward(self, dy, cache, gradients):
        _, inner = super().forward(*cache)
        return super().backward(dy, inner, gradients)


@wrong((2, 5, 4), training=True, shows=rules.second_backward_differs)
class RewindsOnce(Dropout):
    """Recomputes with a copy of the generator, which a second backward pass finds used."""

    def forward(self, x, context):
        kept = copy.deepcopy(context.generator)
        return super().forward(x, context)[0], (x, nf.Context(context.training, kept))

    def backward(self, dy, cache, gradients):
        _, inner = super().forward(*cache)
        return super().backward(dy, inner, gradients)


@wrong((2, 5, 4), training=True, shows=rules.forward_differs)
class OwnGenerator(Dropout):
    """Draws from a generator of its own, so that a seed does not repeat a training."""

    def __init__(self, p=0.3):
        super().__init__(p)
        self._own = np.random.default_rng(0)

    def forward(self, x, context):
        return super().forward(x, nf.Context(context.training, self._own))


@wrong((2, 5, 4), shows=rules.forward_differs)
class NoiseAtEvaluation(nf.Layer):
    """Adds noise from NumPy's global generator, at evaluation too."""

    def forward(self, x, context):
        return (x + 0.1 * np.random.standard_normal(x.shape)) ** 2, x  # noqa: NPY002

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


@wrong((2, 5, 4), training=True)
class SkippedSamples(nf.Layer):
    """Stochastic depth; the samples whose branch was skipped get its gradient all the same."""

    def forward(self, x, context):
        keep = context.generator.random((len(x), 1, 1)) >= 0.5
        return x + keep * np.tanh(x), np.tanh(x)

    def backward(self, dy, cache, gradients):
        return dy + 0.5 * dy * (1.0 - cache**2)


@wrong((2, 5, 4), shows=rules.second_backward_differs)
class NoisyGradient(nf.Layer):
    """Adds noise of 1e-8 to dx, from a generator of its own."""

    def __init__(self):
        self._own = np.random.default_rng(0)

    def forward(self, x, context):
        return x**3, x

    def backward(self, dy, cache, gradients):
        return 3.0 * dy * cache**2 + 1e-8 * self._own.normal(size=dy.shape)


@wrong((2, 5, 4), training=True)
class DropsWeights(nf.Layer):
    """Weights are dropped going forward; their gradient forgets which."""

    def __init__(self, dtype="float64"):
        self.weight = nf.Parameter(np.eye(4, dtype=dtype))

    def forward(self, x, context):
        keep = context.generator.random((4, 4)) >= 0.4
        return x @ (self.weight.value * keep), (x, keep)

    def backward(self, dy, cache, gradients):
        x, keep = cache
        gradients.add(self.weight, np.einsum("bli,blj->ij", x, dy))
        return dy @ (self.weight.value * keep).T


class _BatchNorm(nf.Layer):
    """Statistics of the batch in training, taken as constants going back."""

    def forward(self, x, context):
        m, s = (0.5, 2.0)
        if context.training:
            m, s = x.mean(axis=(0, 1)), ((x - x.mean(axis=(0, 1))) ** 2).mean(axis=(0, 1)) ** 0.5
        return (x - m) / s, s

    def backward(self, dy, cache, gradients):
        return dy / cache


@wrong((2, 5, 4), training=True)
class StatisticsAreConstants(_BatchNorm):
    """In training, mean and deviation of the batch are taken as constants."""


@wrong((2, 5, 4), shows=at((2, 5, 4), training=True), missed=True)
class StatisticsAtEvaluation(_BatchNorm):
    """The same, checked at evaluation."""


@wrong((2, 5, 4), training=True)
class HardSample(nf.Layer):
    """A sample of one feature, hard going forward and soft going back."""

    def forward(self, x, context):
        z = x - np.log(-np.log(context.generator.random(x.shape)))
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return (z == z.max(axis=-1, keepdims=True)).astype(x.dtype), p

    def backward(self, dy, cache, gradients):
        return cache * (dy - (dy * cache).sum(axis=-1, keepdims=True))
