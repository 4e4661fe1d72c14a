"""Wrong layers, as people write them by hand: linear maps, layer norms, activations, dropouts."""

# ruff: noqa: D102 -- documented in Layer

from typing import Any

from npformer.core import Array, Context, Gradients
from npformer.layers import GELU, Dropout, LayerNorm, Linear
from npformer.learn.museum.table import GRADIENT, bug


@bug(34, *GRADIENT, "gradient_of_a_linear_map")
class LinearThatReshapesItsGradient(Linear):
    """The gradient of a matrix is computed transposed, and reshaped until it fits.

    Who: 3 of 26 public hand-written NumPy Transformers have a transposed gradient.
    Why: dW = x^T dy. Its transpose dy^T x holds the same numbers, and a reshape keeps their order
    in memory: it changes the shape, and puts each number in the wrong place.
    Cost: Each weight is trained by the gradient of another. The biases still learn, so the loss
    falls.
    Caught: Gradient checks. Comparing shapes or norms shows nothing.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        rows, *_ = cache
        drows = dy.reshape(len(rows), -1)
        dW = (drows.T @ rows).reshape(self.weight.shape)
        gradients.add_each((self.weight, self.bias), (dW, drows.sum(axis=0)))
        return dy @ self.weight.value.T


@bug(35, "a_norm_is_of_one_token")
class LayerNormThatFindsItsAxis(LayerNorm):
    """Layer norm takes the first axis that is as long as gamma for the one of the features.

    Who: 3 of 26 public hand-written NumPy Transformers find an axis, or a target, by its size or
    its value.
    Why: The features are the last axis, whatever its length is. In a batch of as many sequences as
    there are features, or of as many tokens, the first axis of that length is another.
    Cost: Nothing, until a batch or a sequence has that length. Then tokens are normalised across
    each other, and what a model says of one depends on the others.
    Caught: Changing a token at such a shape: no other may change. No gradient check, because the
    backward pass takes the same axis.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        axis = x.shape.index(self.gamma.value.size)
        y, cache = super().forward(x.swapaxes(axis, -1), context)
        return y.swapaxes(axis, -1), (cache, axis)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        norm_cache, axis = cache
        dx = super().backward(dy.swapaxes(axis, -1), norm_cache, gradients)
        return dx.swapaxes(axis, -1)


@bug(38, *GRADIENT, "gradient_of_an_activation")
class GELUThatKeepsItsResult(GELU):
    """An activation keeps its result for the backward pass, which expects its input.

    Who: At least one of 26 public hand-written NumPy Transformers keeps the wrong array. Reusing a
    name does it: h = gelu(h), and h goes into the cache.
    Why: The derivative of gelu at x is needed, and the cache says that x was gelu(x).
    Cost: Negative inputs, whose result is near 0, get a gradient of about a half in place of 0.
    Caught: Gradient checks. ReLU would pass: its result has the sign of its input.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        y, _ = super().forward(x, context)
        _, cache = super().forward(y, context)
        return y, cache


@bug(39, "dropout_keeps_the_mean")
class DropoutDividedByItsRate(Dropout):
    """Dropout divides what it keeps by p, the probability of dropping, and not by 1 - p.

    Who: At least one of 26 public hand-written NumPy Transformers; some texts call the probability
    of keeping p, others that of dropping.
    Why: An entry is kept with probability 1 - p. Divided by 1 - p, it is x on average.
    Cost: At p = 0.1, activations in training are nine times as large as at evaluation. At p = 0.5
    it is right.
    Caught: In training, dropout must keep the mean, at a rate other than 0.5. No gradient check,
    because the backward pass has the same factor.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        y, scaled_mask = super().forward(x, context)
        if scaled_mask is None:
            return y, None
        factor = (1.0 - self.rate) / self.rate
        return y * factor, scaled_mask * factor


@bug(41, "gradient_of_layer_norm")
class LayerNormDividedByItsTokens(LayerNorm):
    """The backward pass of layer norm divides sums over the features by the number of tokens.

    Who: Someone who takes the formula of batch norm, whose N counts rows, or writes
    N, D = x.shape and the wrong one of the two.
    Why: Means are taken over the d features of a token, so that the sums of its gradient are
    divided by d.
    Cost: In batches of many tokens, two of the three terms of the gradient vanish.
    Caught: Gradient checks, unless there happen to be as many tokens as features. Two sequences of
    four tokens with eight features pass, with a note of gradcheck that these sizes coincide.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        n, inverse_std, *_ = cache
        gradients.add(self.gamma, (dy * n).reshape(-1, n.shape[-1]).sum(axis=0))
        gradients.add(self.beta, dy.reshape(-1, n.shape[-1]).sum(axis=0))
        dn = dy * self.gamma.value
        n_tokens = n[..., 0].size
        mean = dn.sum(axis=-1, keepdims=True) / n_tokens
        along_n = (dn * n).sum(axis=-1, keepdims=True) / n_tokens
        return (dn - mean - n * along_n) * inverse_std
