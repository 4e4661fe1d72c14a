"""Wrong layer norms."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients
from npformer.layers import LayerNorm


class LayerNormWithoutGamma(LayerNorm):
    """The backward pass of layer norm forgets gamma.

    Who: Someone who tests only a fresh layer, whose gamma is 1.
    Why: y = gamma n + beta, so the gradient with respect to n is dy gamma, not dy.
    Cost: All gradients of earlier layers are wrong, more so as gamma moves away from 1.
    Caught: Gradient checks, once gamma is not 1.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        n, inverse_std, _ = cache
        gradients.add(self.gamma, (dy * n).reshape(-1, n.shape[-1]).sum(axis=0))
        gradients.add(self.beta, dy.reshape(-1, n.shape[-1]).sum(axis=0))
        along_n = (dy * n).mean(axis=-1, keepdims=True)
        return (dy - dy.mean(axis=-1, keepdims=True) - n * along_n) * inverse_std


class LayerNormWithoutEpsilon(LayerNorm):
    """Layer norm has no epsilon.

    Who: Someone who copies the formula from a lecture. Real rows are rarely constant, but padding
    is.
    Why: A constant row has variance 0, and 0 / sqrt(0) is NaN, which spreads to every parameter.
    Cost: A single token of zeros can destroy the whole model.
    Caught: A constant row. No gradient check of ordinary numbers.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        centred = x - x.mean(axis=-1, keepdims=True)
        inverse_std = 1.0 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True))
        normalised = centred * inverse_std
        gamma, beta = self.gamma.value, self.beta.value
        return gamma * normalised + beta, (normalised, inverse_std, gamma)


class LayerNormInOnePass(LayerNorm):
    """The variance is computed as E[x^2] - E[x]^2, in float32.

    Who: Someone who wants one pass over the data instead of two.
    Why: At mean 1e4 both terms are near 1e8, where neighbouring float32 numbers are 8 apart. Their
    difference, the variance, is a multiple of 8 and may be negative. For eight rows of variance 1
    it came out as 0, -8, 0, 0, 8, -8, -8 and 8.
    Cost: Nothing while means are small; then noise, and NaN where the variance is negative.
    Caught: Float32 at a large mean. No gradient check, because those run in float64.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        mean = x.mean(axis=-1, keepdims=True)
        variance = (x * x).mean(axis=-1, keepdims=True) - mean * mean
        inverse_std = 1.0 / np.sqrt(variance + self.eps)
        normalised = (x - mean) * inverse_std
        gamma, beta = self.gamma.value, self.beta.value
        return gamma * normalised + beta, (normalised, inverse_std, gamma)
