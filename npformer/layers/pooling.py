"""Pooling: from a sequence to what the classifier sees."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Registry,
    Seed,
    array_module,
    backend_of,
    checks,
)
from npformer.layers.activation import Tanh
from npformer.layers.linear import Linear


class Pooling(Layer):
    """What turns (batch, length, d) into what a classifier sees.

    Attributes
    ----------
    per_token : bool
        Whether each token keeps an answer of its own.
    full_length : bool
        Whether every sequence has to have max_len tokens.
    """

    per_token = False
    full_length = False

    def d_pooled(self, d_model: int, max_len: int) -> int:
        """Return how many features come out."""
        return d_model


class MeanPooling(Pooling):
    """The mean of the tokens that the mask keeps: (batch, length, d) -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.mean_pooling(x, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.mean_pooling_backward(dy, cache)


class FirstToken(Pooling):
    """The first token, as BERT's [CLS]: (batch, length, d) -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.shape("x", x, ("batch", "length", "d_model"))
        return x[:, 0], x.shape

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx = array_module(dy).zeros(cache, dtype=dy.dtype)
        dx[:, 0] = dy
        return dx


class Flatten(Pooling):
    """All tokens side by side, padding as 0: (batch, length, d) -> (batch, length d)."""

    full_length = True

    def d_pooled(self, d_model: int, max_len: int) -> int:
        return d_model * max_len

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.shape("x", x, ("batch", "length", "d_model"))
        kept = without_padding(x, context.mask)
        return kept.reshape(x.shape[0], x.shape[1] * x.shape[2]), (x.shape, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        shape, mask = cache
        return without_padding(dy.reshape(shape), mask)


class EveryToken(Pooling):
    """No pooling: one answer for each token."""

    per_token = True

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return x, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return dy


class Pooler(Pooling):
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


POOLINGS: Registry[Layer] = Registry(
    "pooling",
    {
        "mean": lambda d_model, seed, dtype: MeanPooling(),
        "first": lambda d_model, seed, dtype: FirstToken(),
        "flatten": lambda d_model, seed, dtype: Flatten(),
        "none": lambda d_model, seed, dtype: EveryToken(),
        "pooler": lambda d_model, seed, dtype: Pooler(d_model, seed=seed, dtype=dtype),
    },
    table="npformer.layers.POOLINGS",
    makes=Layer,
    gets="d_model, seed, dtype and their options",
)
"""What ``SequenceClassifier(pooling=...)`` takes. Builders are called with d_model, seed and dtype,
and return a layer, a `Pooling` if its output is not (batch, d_model)."""
