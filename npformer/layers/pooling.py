"""Pooling: from a sequence to what the classifier sees."""

from __future__ import annotations

from typing import Any

from npformer import checks
from npformer import functional as F
from npformer.backend import Array, array_module, backend_of
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
        if context.mask is not None:
            checks.mask("mask", context.mask, tuple(x.shape[:2]))
        kept = _keep(x, context.mask)
        return kept.reshape(x.shape[0], -1), (x.shape, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        shape, mask = cache
        return _keep(dy.reshape(shape), mask)


class EveryToken(Layer):
    """No pooling: one answer for each token."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return x, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return dy


def _keep(x: Array, mask: Array | None) -> Array:
    if mask is None:
        return x
    return backend_of(x=x, mask=mask).module.where(mask[..., None], x, 0.0)


POOLINGS: dict[str, type[Layer]] = {
    "mean": MeanPooling,
    "first": FirstToken,
    "flatten": Flatten,
    "none": EveryToken,
}
"""What ``SequenceClassifier(pooling=...)`` takes."""
