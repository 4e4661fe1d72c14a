"""Wrong layer norms."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients
from npformer.layers import LayerNorm


class LayerNormWithoutGamma(LayerNorm):
    """The backward pass of layer norm forgets gamma.

    Parameters
    ----------
    d_model, eps, dtype
        As in `LayerNorm`.

    Notes
    -----
    Who: Whoever tests it on a fresh layer only: there gamma is 1 and nothing is wrong.

    Why: y = gamma n + beta, so the gradient that reaches n is dy gamma, not dy.

    Cost: Wrong gradients of everything below, the more so the longer gamma has been trained.

    Caught: By differences and by the complex step, once gamma is away from 1:
    `gradient_of_layer_norm`.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        n, inverse_std, _ = cache
        gradients.add(self.gamma, (dy * n).reshape(-1, n.shape[-1]).sum(axis=0))
        gradients.add(self.beta, dy.reshape(-1, n.shape[-1]).sum(axis=0))
        along_n = (dy * n).mean(axis=-1, keepdims=True)
        return (dy - dy.mean(axis=-1, keepdims=True) - n * along_n) * inverse_std


class LayerNormWithoutEpsilon(LayerNorm):
    """Layer norm has no epsilon.

    Parameters
    ----------
    d_model, eps, dtype
        As in `LayerNorm`.

    Notes
    -----
    Who: Someone who writes the formula of a lecture: real data has no constant rows, padding has.

    Why: A constant row has variance 0: 0 / sqrt(0) is NaN, and NaN spreads to every parameter.

    Cost: One token of zeros, and the model is lost.

    Caught: By no gradient check of ordinary numbers, but by a row that is constant:
    `a_constant_row_is_finite`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        centred = x - x.mean(axis=-1, keepdims=True)
        inverse_std = 1.0 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True))
        normalised = centred * inverse_std
        gamma, beta = self.gamma.value, self.beta.value
        return gamma * normalised + beta, (normalised, inverse_std, gamma)


class LayerNormInOnePass(LayerNorm):
    """The variance is computed as E[x^2] - E[x]^2, in float32.

    Parameters
    ----------
    d_model, eps, dtype
        As in `LayerNorm`.

    Notes
    -----
    Who: Someone who wants one pass over the data instead of two.

    Why: At mean 1e4 both terms are 1e8, where float32 has steps of 8: their difference, the
    variance, is a multiple of 8, and may be negative.

    Cost: Nothing while means are small; then noise, and NaN where the variance is negative.

    Caught: By no gradient check, which is in float64, but in float32 at a large mean:
    `a_large_mean_costs_no_digits`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        mean = x.mean(axis=-1, keepdims=True)
        variance = (x * x).mean(axis=-1, keepdims=True) - mean * mean
        inverse_std = 1.0 / np.sqrt(variance + self.eps)
        normalised = (x - mean) * inverse_std
        gamma, beta = self.gamma.value, self.beta.value
        return gamma * normalised + beta, (normalised, inverse_std, gamma)
