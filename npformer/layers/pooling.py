"""Pooling: from a sequence to what the classifier sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npformer import checks
from npformer import functional as F
from npformer.backend import Array, array_module, backend_of
from npformer.initializers import Seed
from npformer.layers.activation import Tanh
from npformer.layers.linear import Linear
from npformer.module import Context, Gradients, Layer


class MeanPooling(Layer):
    """The mean of the tokens that the mask keeps: (batch, length, d) -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.mean_pooling(x, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.mean_pooling_backward(dy, cache)


class FirstToken(Layer):
    """The first token, as BERT's [CLS]: (batch, length, d) -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.shape("x", x, ("batch", "length", "d_model"))
        return x[:, 0], x.shape

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx = array_module(dy).zeros(cache, dtype=dy.dtype)
        dx[:, 0] = dy
        return dx


class Flatten(Layer):
    """All tokens side by side, padding as 0: (batch, length, d) -> (batch, length d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.shape("x", x, ("batch", "length", "d_model"))
        kept = without_padding(x, context.mask)
        return kept.reshape(x.shape[0], x.shape[1] * x.shape[2]), (x.shape, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        shape, mask = cache
        return without_padding(dy.reshape(shape), mask)


class EveryToken(Layer):
    """No pooling: one answer for each token."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return x, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return dy


class Pooler(Layer):
    """y = tanh(x_first W + b), BERT's pooler: (batch, length, d) -> (batch, d).

    Parameters
    ----------
    d_model : int
        Features in and out.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(self, d_model: int, *, seed: Seed, dtype: str = "float32") -> None:
        self.first = FirstToken()
        self.dense = Linear(d_model, d_model, seed=seed, dtype=dtype)
        self.activation = Tanh()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        first, first_cache = self.first.forward(x, context)  # [batch, d_model]
        before, dense_cache = self.dense.forward(first, context)
        y, activation_cache = self.activation.forward(before, context)
        return y, (first_cache, dense_cache, activation_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        first_cache, dense_cache, activation_cache = cache
        dbefore = self.activation.backward(dy, activation_cache, gradients)
        dfirst = self.dense.backward(dbefore, dense_cache, gradients)
        return self.first.backward(dfirst, first_cache, gradients)


def without_padding(x: Array, mask: Array | None) -> Array:
    """Return x, (batch, length, features), with 0 at padding.

    Padding may hold anything, NaN too, and 0 * NaN would reach the tokens that are kept.
    """
    if mask is None:
        return x
    backend = backend_of(x=x, mask=mask)
    checks.mask("mask", mask, tuple(x.shape[:2]))
    return backend.module.where(mask[..., None], x, 0.0)


POOLINGS: dict[str, Callable[[int, Seed, str], Layer]] = {
    "mean": lambda d_model, seed, dtype: MeanPooling(),
    "first": lambda d_model, seed, dtype: FirstToken(),
    "flatten": lambda d_model, seed, dtype: Flatten(),
    "none": lambda d_model, seed, dtype: EveryToken(),
    "pooler": lambda d_model, seed, dtype: Pooler(d_model, seed=seed, dtype=dtype),
}
"""What ``SequenceClassifier(pooling=...)`` takes, and how it is made."""
