"""Wrong layers: layer norms, dropouts, activations."""

# ruff: noqa: D102, RET503 -- documented in Layer; one bug is a missing return

import math
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context, Gradients, array_module
from npformer.layers import GELU, Dropout, LayerNorm
from npformer.learn.museum.table import GRADIENT, bug, twice


@bug(4, *GRADIENT, "gradient_of_layer_norm")
class LayerNormWithoutGamma(LayerNorm):
    """The backward pass of layer norm forgets gamma.

    Who: Someone who tests only a fresh layer, whose gamma is 1.
    Why: y = gamma n + beta, so the gradient with respect to n is dy gamma, not dy.
    Cost: All gradients of earlier layers are wrong, more so as gamma moves away from 1.
    Caught: Gradient checks, once gamma is not 1.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        n, inverse_std, *_ = cache
        gradients.add(self.gamma, (dy * n).reshape(-1, n.shape[-1]).sum(axis=0))
        gradients.add(self.beta, dy.reshape(-1, n.shape[-1]).sum(axis=0))
        along_n = (dy * n).mean(axis=-1, keepdims=True)
        return (dy - dy.mean(axis=-1, keepdims=True) - n * along_n) * inverse_std


@bug(8, "a_constant_row_is_finite", config={"norm": "pre"})
class LayerNormWithoutEpsilon(LayerNorm):
    """Layer norm has no epsilon.

    Who: Someone who copies the formula from a lecture. Real rows are rarely constant, but padding
    is.
    Why: A constant row has variance 0, and 0 / sqrt(0) is NaN, which spreads to every parameter.
    Cost: A single token of zeros can destroy the whole model.
    Caught: A constant row. No gradient check of ordinary numbers.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.layer_norm(x, self.gamma.value, self.beta.value, eps=0.0)


@bug(12, "a_large_mean_costs_no_digits", config={"norm": "pre"})
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
        return gamma * normalised + beta, (normalised, inverse_std, gamma, True)


@bug(2, *GRADIENT, "gradient_of_one_dropout_used_twice", build=twice, options={"training": True})
class DropoutThatRemembers(Dropout):
    """A dropout layer keeps its mask in itself, and is used twice in a block.

    Who: Anyone whose layers store their activations: it works until a layer is shared.
    Why: dx = dy m / (1 - p), but the mask m of the first use is overwritten by the second use.
    Cost: Gradients of the first use are computed with the wrong mask.
    Caught: Gradient checks in training, of two uses of the layer.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        y, self.mask = F.dropout(x, self.rate, context.dropout_generator())
        return y, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.dropout_backward(dy, self.mask)


@bug(3, "dropout_does_nothing_at_evaluation", build=twice)
class DropoutThatScalesAtEvaluation(Dropout):
    """Dropout still scales by 1 / (1 - p) at evaluation.

    Who: Someone who moves the scaling from evaluation to training and forgets the old line.
    Why: E[m / (1 - p)] = 1 in training, so evaluation needs no scaling.
    Cost: The model that is evaluated is not the one that was trained.
    Caught: At evaluation dropout must return its input. No gradient check, because the backward
    pass scales too.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if not context.training:
            scale = array_module(x).full_like(x, 1.0 / (1.0 - self.rate))
            return x * scale, scale
        return super().forward(x, context)


@bug(9, "protocol", "gradient_of_dropout_at_evaluation")
class DropoutWithoutAReturn(Dropout):
    """The backward pass of dropout returns nothing at evaluation.

    Who: Someone who writes `if training:` around the body and forgets the other case.
    Why: At evaluation y = x, so dx = dy.
    Cost: There is no gradient at evaluation, for example to explain a prediction.
    Caught: gradcheck at evaluation, because a backward pass must return a gradient.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if cache is not None:
            return dy * cache


@bug(10, "gelu_is_the_one_that_was_asked_for")
class GELUThatIgnoresItsOption(GELU):
    """GELU computes its tanh form although the exact form was asked for.

    Who: Someone who adds an option and leaves the old line in place.
    Why: x Phi(x) and its tanh form differ by up to 5e-4, so weights trained with one form run with
    the other.
    Cost: Results agree with other libraries to three digits only.
    Caught: Known values. No gradient check, because the backward pass is that of the same form.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.gelu(x, approximate="tanh")


@bug(11, "no_power_of_an_array", build=lambda kind, **_: kind("tanh"))
class GELUWithAPower(GELU):
    """GELU computes a cube as x**3.

    Who: Everyone: the formula is printed that way.
    Why: The result is the same, but NumPy calls pow for each entry, while x * x * x multiplies
    whole vectors. (NumPy has a fast path for x**2, but none for x**3.)
    Cost: It takes many times as long. With x = np.linspace(-4, 4, 1_000_000,
    dtype='f'), compare timeit x**3 with timeit x * x * x in IPython.
    Caught: A check of the source code. No number is wrong.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        u = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
        phi, _ = F.sigmoid(2.0 * u)
        return x * phi, ("tanh", x, phi)
