"""Right layers with unusual numbers, parameters, inputs, memory, randomness and refusals."""

import copy

import numpy as np

import npformer as nf
from tests.proof.layers_of_others import MASK, SHAPE, TIES, Formula, Square, entrywise


def normal(*shape, scale=1.0):
    return scale * np.random.default_rng(0).normal(size=shape)


def shared_ties(x):
    y = x.max(axis=1)
    tied = x == y[:, None]
    return y, (tied / tied.sum(axis=1, keepdims=True)).astype(x.dtype)


def sum_of_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p.sum(axis=-1), p


def logistic(x):
    every = [x]
    for _ in range(10):
        every.append(4.0 * every[-1] * (1.0 - every[-1]))
    return every[-1], every


def logistic_backward(dy, every):
    for x in reversed(every[:-1]):
        dy = dy * 4.0 * (1.0 - 2.0 * x)
    return dy


def log_determinant(x):
    a = x @ x.swapaxes(1, 2) + np.eye(x.shape[1], dtype=x.dtype)
    factor = np.linalg.cholesky(a)  # has no complex form
    return 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1), (x, a)


def apart(x):
    """Return a thousand times the last scale for each feature."""
    return 1e3 ** np.arange(4, dtype="float32").astype(x.real.dtype)


FORMULAS = {
    "ties share": (Formula(shared_ties, lambda dy, share: dy[:, None] * share), TIES),
    "one-hot: steps, of slope 0": (
        Formula(lambda x: ((x == x.max(axis=-1, keepdims=True)).astype(x.dtype), None),
                lambda dy, _: np.zeros_like(dy)), SHAPE),
    "positions alone, so dx is None": (
        Formula(lambda x: (np.zeros_like(x) + np.arange(5, dtype=x.dtype)[:, None], None),
                lambda dy, _: None), SHAPE),
    "bent within 1e-4": (
        entrywise(lambda x: (x * x + 1e-8) ** 0.5, lambda x: x / (x * x + 1e-8) ** 0.5),
        np.array([[[0.0, 1e-3, -0.5, 2.0]]])),
    "bent within 1e-3": (
        entrywise(lambda x: np.sin(1000.0 * x) / 1000.0, lambda x: np.cos(1000.0 * x)), (2, 3, 4)),
    "1 whatever x is": (
        Formula(sum_of_softmax, lambda dy, p: p * (dy - (dy[..., None] * p).sum(axis=-1))[..., None]
                ), SHAPE),
    "flat at 0": (entrywise(lambda x: x**4, lambda x: 4.0 * x**3), np.zeros((1, 3, 4))),
    "huge": (entrywise(lambda x: 1e12 * np.sin(x), lambda x: 1e12 * np.cos(x)), SHAPE),
    "tiny": (entrywise(lambda x: 1e-12 * np.sin(x), lambda x: 1e-12 * np.cos(x)), SHAPE),
    "tiny inputs": (
        entrywise(lambda x: np.tanh(1e8 * x), lambda x: 1e8 * (1.0 - np.tanh(1e8 * x) ** 2)),
        normal(2, 5, 4, scale=1e-8)),
    "huge inputs": (
        entrywise(lambda x: np.tanh(1e-6 * x), lambda x: 1e-6 * (1.0 - np.tanh(1e-6 * x) ** 2)),
        normal(2, 5, 4, scale=1e6)),
    "eight digits left": (Formula(lambda x: (x + 1e8, None), lambda dy, _: dy.copy()), SHAPE),
    "scales apart": (
        entrywise(lambda x: np.sin(x) * apart(x), lambda x: np.cos(x) * apart(x)), SHAPE),
    "chaos": (
        Formula(logistic, logistic_backward), np.random.default_rng(0).uniform(size=(2, 3, 4))),
    "log determinant": (
        Formula(log_determinant,
                lambda dy, cache: 2.0 * dy[:, None, None] * np.linalg.inv(cache[1]) @ cache[0]),
        (2, 3, 3)),
    "x and dy themselves": (Formula(lambda x: (x, None), lambda dy, _: dy), SHAPE),
    "a dx that is read-only": (
        Formula(lambda x: (x.mean(axis=1), x.shape),
                lambda dy, shape: np.broadcast_to(dy[:, None] / shape[1], shape)), SHAPE),
    "y and dx in Fortran order": (
        Formula(lambda x: (np.asfortranarray(np.sin(x)), x),
                lambda dy, x: np.asfortranarray(dy * np.cos(x))), SHAPE),
}  # fmt: skip


def gather(x, where):
    return x[np.arange(len(x))[:, None], where] ** 2, (x, where)


def gather_backward(dy, cache):
    x, where = cache
    rows = np.arange(len(x))[:, None]
    dx = np.zeros_like(x)
    np.add.at(dx, (rows, where), 2.0 * dy * x[rows, where])
    return dx


def chosen(x, keep):
    return np.exp(x[..., keep]), (x, keep)


def chosen_backward(dy, cache):
    x, keep = cache
    dx = np.zeros_like(x)
    dx[..., keep] = dy * np.exp(x[..., keep])
    return dx


def one_number(a, b):
    return (a * np.sin(b)).sum(), (a, b)


def one_number_backward(dy, cache):
    a, b = cache
    return dy * np.sin(b), dy * a * np.cos(b)


class Unused(Square):
    """A parameter that nothing uses, and one without entries."""

    def __init__(self):
        super().__init__()
        self.spare, self.none = nf.Parameter(np.zeros(3)), nf.Parameter(np.zeros((0, 4)))

    def backward(self, dy, cache, gradients):
        gradients.add(self.none, np.zeros((0, 4), dy.dtype))
        return super().backward(dy, cache, gradients)


class Scalar(nf.Layer):
    def __init__(self):
        self.scale = nf.Parameter(np.ones(()))

    def forward(self, x, context):
        return x**2 * self.scale.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.scale, (dy * cache**2).sum())
        return 2.0 * dy * cache * self.scale.value


class Constant(Square):
    """A table that is no trained parameter, and to which backward adds all the same."""

    def __init__(self):
        super().__init__()
        self.table = nf.Parameter(np.arange(4.0), trainable=False)

    def forward(self, x, context):
        return super().forward(x * self.table.value, context)

    def backward(self, dy, cache, gradients):
        d = super().backward(dy, cache, gradients)
        gradients.add(self.table, d.sum(axis=(0, 1)))
        return d * self.table.value


class RefusesFloat32(Square):
    def forward(self, x, context):
        if x.dtype == np.float32:
            raise TypeError("x is float32; expected float64")
        return super().forward(x, context)


class OneInputUnused(nf.TwoInputLayer):
    """The second input has no influence: its gradient is None."""

    def forward(self, a, b, context):
        return np.sin(a) * context.mask[..., None], (a, context.mask)

    def backward(self, dy, cache, gradients):
        a, mask = cache
        return dy * mask[..., None] * np.cos(a), None


class RemembersTables(nf.Layer):
    """Keeps a table for each length and dtype, made at the first call."""

    def __init__(self):
        self._tables = {}

    def table(self, x):
        key = x.shape[1], x.real.dtype
        if key not in self._tables:
            self._tables[key] = np.cos(np.arange(x.shape[1]))[:, None].astype(key[1])
        return self._tables[key]

    def forward(self, x, context):
        return np.sin(x * self.table(x)), x

    def backward(self, dy, cache, gradients):
        t = self.table(cache)
        return dy * np.cos(cache * t) * t


class Recomputes(nf.Layer):
    """Dropout that draws its mask again from a copy of the generator's state."""

    def keep(self, x, generator):
        return (copy.deepcopy(generator).random(x.shape) >= 0.3) / 0.7

    def forward(self, x, context):
        generator_before = copy.deepcopy(context.generator)
        context.generator.random(x.shape)
        return x**2 * self.keep(x, generator_before).astype(x.real.dtype), (x, generator_before)

    def backward(self, dy, cache, gradients):
        x, generator_before = cache
        return 2.0 * x * dy * self.keep(x, generator_before).astype(dy.dtype)


RIGHT = {
    **{name: (*case, {}) for name, case in FORMULAS.items()},
    "rows chosen by numbers": (
        (gather, gather_backward), SHAPE, np.array([[0, 1, 1], [4, 4, 2]]), {}),
    "features chosen by bools": (
        (chosen, chosen_backward), SHAPE, np.array([True, False, True, True]), {}),
    "one number of two vectors": ((one_number, one_number_backward), (3,), (3,), {}),
    "a batch of one number": (Scalar(), normal(1, 1, 1), {}),
    "more entries than are checked one by one": (Square(8), (3, 5, 8), {}),
    "one input unused": (OneInputUnused(), SHAPE, (2, 3, 2), {"mask": (MASK, None)}),
    "recomputes": (Recomputes(), SHAPE, {"training": True}),
    **{kind.__name__: (kind(), SHAPE, {})
       for kind in (Unused, Scalar, Constant, RefusesFloat32, RemembersTables)},
}  # fmt: skip
