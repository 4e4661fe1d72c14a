"""Wrong layers: numbers, masks, parameters, arrays kept between calls, randomness, precision."""

import numpy as np

import npformer as nf
from tests.proof.layers_of_others import MASK, SHAPE, TIES, Formula, Square, entrywise


def scaled(x):
    scale = abs(x).max(axis=-1, keepdims=True)
    return x / scale, scale


def eps_elsewhere(eps):
    """Return RMS norm with eps beside the root; going back it is under the root."""

    def backward(dy, x):
        r = ((x * x).mean(axis=-1, keepdims=True) + eps) ** 0.5
        n = x / r
        return (dy - n * (dy * n).mean(axis=-1, keepdims=True)) / r

    return Formula(lambda x: (x / ((x * x).mean(axis=-1, keepdims=True) ** 0.5 + eps), x), backward)


def wave(x):
    return np.sin(x) * np.exp(-x)


def cube(x):
    return x**3, x


def in_float16(dy, x):
    short = dy.astype("float16") if dy.dtype == np.float32 else dy
    return (3.0 * short * x.astype(short.dtype) ** 2).astype(dy.dtype)


def into_fortran_order(dy, x):
    g = np.asfortranarray(dy)  # a copy, unless dy is in that order already
    g *= 3.0 * x**2
    return g


NOISE = np.random.default_rng(0)
FORMULAS = {
    "straight through": Formula(lambda x: (np.round(x), None), lambda dy, _: dy),
    "the scale is stopped": Formula(scaled, lambda dy, scale: dy / scale),
    "a tiny eps elsewhere": eps_elsewhere(1e-8),
    "differences inside, right to 1e-8": entrywise(
        wave, lambda x: (wave(x + 3e-4) - wave(x - 3e-4)) / 6e-4),
    "2e-7 too much, in real numbers alone": entrywise(
        lambda x: np.hypot(x, 1.0), lambda x: (1.0 + 2e-7) * x / np.hypot(x, 1.0)),
    "writes into Fortran order": Formula(cube, into_fortran_order),
    "empties its cache": Formula(lambda x: (x**3, [x]), lambda dy, one: 3.0 * dy * one.pop() ** 2),
    "widens dx": Formula(cube, lambda dy, x: np.full(dy.shape[-1], 3.0) * dy * x**2),
    "float16 in float32": Formula(cube, in_float16),
    "a noisy gradient": Formula(
        cube, lambda dy, x: 3.0 * dy * x**2 + 1e-8 * NOISE.normal(size=dy.shape)),
}  # fmt: skip


class NotTransposed(Square):
    def backward(self, dy, cache, gradients):
        super().backward(dy, cache, gradients)
        return dy * (1.0 - cache[1] ** 2) @ self.weight.value


class Overwrites(Square):
    def backward(self, dy, cache, gradients):
        gradients.of(self.weight)[...] = 0.0
        return super().backward(dy, cache, gradients)


class OneUseOfTwo(Square):
    """A weight applied twice, y = tanh(x W) W; the second use adds nothing."""

    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return y @ self.weight.value, cache

    def backward(self, dy, cache, gradients):
        return super().backward(dy @ self.weight.value.T, cache, gradients)


class DecaysItsWeight(Square):
    def backward(self, dy, cache, gradients):
        gradients.add(self.weight, 1e-4 * self.weight.value)
        return super().backward(dy, cache, gradients)


class BiasOfNothing(Square):
    """The bias was taken out of the forward pass, and still gets a gradient."""

    def __init__(self):
        super().__init__()
        self.bias = nf.Parameter(np.zeros(4))

    def backward(self, dy, cache, gradients):
        gradients.add(self.bias, dy.sum(axis=(0, 1)))
        return super().backward(dy, cache, gradients)


class NormalizesGoingBack(Square):
    """Going back it makes the rows of its weight unit vectors, for the next time."""

    def backward(self, dy, cache, gradients):
        dx, w = super().backward(dy, cache, gradients), self.weight.value
        w /= (w * w).sum(axis=1, keepdims=True) ** 0.5
        return dx


class RunningMeanAtEvaluation(nf.Layer):
    """Its running mean, a constant, moves with each call, even at evaluation."""

    def __init__(self):
        self.mean = nf.Parameter(np.zeros(4), trainable=False)

    def forward(self, x, context):
        self.mean.value[...] = 0.9 * self.mean.value + 0.1 * x.mean(axis=(0, 1)).real
        return (x - self.mean.value) ** 2, x - self.mean.value

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


class Mean(nf.Layer):
    """The mean of the tokens that the mask keeps, whose gradient goes to padding, too."""

    def forward(self, x, context):
        mask = context.mask
        return np.where(mask[..., None], x, 0.0).sum(axis=1) / self.n(mask), mask

    def n(self, mask):
        return mask.sum(axis=1)[:, None]

    def backward(self, dy, mask, gradients):
        return np.repeat((dy / self.n(mask))[:, None], mask.shape[1], axis=1)


class MaskOfTheFirstSample(Mean):
    def backward(self, dy, mask, gradients):
        first = np.repeat(mask[:1], len(dy), axis=0)
        return (dy / self.n(first))[:, None] * first[..., None]


class KeepsTheLastToken(nf.Layer):
    """Makes sure that no row of the mask is empty, in the caller's mask."""

    def forward(self, x, context):
        context.mask[:, -1] = True
        return cube(x * context.mask[..., None])

    def backward(self, dy, x, gradients):
        return 3.0 * dy * x**2


class OneWorkspace(nf.Layer):
    """Keeps x in one workspace, which the next call fills."""

    def __init__(self):
        self._space = {}

    def fill(self, array):
        space = self._space.setdefault((array.shape, array.dtype), np.empty_like(array))
        space[...] = array
        return space

    def forward(self, x, context):
        return x**3, self.fill(x)

    def backward(self, dy, x, gradients):
        return 3.0 * dy * x**2


class ReturnsItsWorkspace(OneWorkspace):
    """Its y is a workspace that the next call fills; the cache is right."""

    def forward(self, x, context):
        return self.fill(x**3), x.copy()


class ReturnsItsGradientsWorkspace(OneWorkspace):
    """Its dx is a workspace that the next backward pass fills."""

    def forward(self, x, context):
        return cube(x)

    def backward(self, dy, x, gradients):
        return self.fill(3.0 * dy * x**2)


class Dropout(nf.Layer):
    """x^2, of which entries are kept with probability 0.7, and scaled: the base of mistakes."""

    def forward(self, x, context):
        keep = (context.generator.random(x.shape) >= 0.3) / 0.7
        return x**2 * keep, (x, keep)

    def backward(self, dy, cache, gradients):
        x, keep = cache
        return 2.0 * x * dy * keep


class DrawsAgain(Dropout):
    def forward(self, x, context):
        return super().forward(x, context)[0], (x, context.generator)

    def backward(self, dy, cache, gradients):
        x, generator = cache
        return super().backward(dy, (x, (generator.random(x.shape) >= 0.3) / 0.7), gradients)


class OwnGenerator(Dropout):
    """Draws from a generator of its own, so that a seed does not repeat a training."""

    def forward(self, x, context):
        return super().forward(x, nf.Context(True, NOISE))


WRONG = {
    **{name: (layer, SHAPE, {}) for name, layer in FORMULAS.items()},
    "each of two ties gets it all": (
        Formula(lambda x: (x.max(axis=1), x == x.max(axis=1)[:, None]),
                lambda dy, at: dy[:, None] * at), TIES, {}),
    **{kind.__name__: (kind(), SHAPE, {})
       for kind in (NotTransposed, Overwrites, OneUseOfTwo, DecaysItsWeight, BiasOfNothing,
                    NormalizesGoingBack, RunningMeanAtEvaluation, OneWorkspace,
                    ReturnsItsWorkspace, ReturnsItsGradientsWorkspace)},
    **{kind.__name__: (kind(), SHAPE, {"mask": MASK})
       for kind in (Mean, MaskOfTheFirstSample, KeepsTheLastToken)},
    **{kind.__name__: (kind(), SHAPE, {"training": True})
       for kind in (DrawsAgain, OwnGenerator)},
}  # fmt: skip
