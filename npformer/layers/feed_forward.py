"""The position-wise feed-forward network."""

from __future__ import annotations

from typing import Any

from npformer import checks, initializers, kernels
from npformer.backend import Array
from npformer.initializers import Seed
from npformer.layers.activation import ACTIVATIONS
from npformer.layers.conv1d import Conv1d
from npformer.layers.linear import Linear
from npformer.module import Context, Gradients, Layer, Parameter

FFNS: dict[str, type[Linear] | type[Conv1d]] = {"linear": Linear, "conv1d": Conv1d}
"""What ``EncoderConfig(ffn=...)`` takes."""


class PositionwiseFeedForward(Layer):
    """FFN(x) = activation(x W1 + b1) W2 + b2, for each position separately and identically.

    Equation (2) of Vaswani et al. (2017), who add: "Another way of describing this is as two
    convolutions with kernel size 1." Both ways are here. They have the same weights up to an axis
    of length 1, are drawn alike from a seed, and give the same numbers at the same cost.

    Parameters
    ----------
    d_model : int
        Features in and out.
    d_ff : int
        Features between.
    activation : str
        A name in `ACTIVATIONS`; the paper's is "relu".
    ffn : {"linear", "conv1d"}
        Linear maps, or convolutions with kernel size 1.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        *,
        ffn: str = "linear",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.choice("ffn", ffn, FFNS)
        checks.choice("activation", activation, ACTIVATIONS)
        rng = initializers.generator(seed)
        self.expand = FFNS[ffn](d_model, d_ff, seed=rng, dtype=dtype)
        self.activation = ACTIVATIONS[activation]()
        self._activation = activation
        self.contract = FFNS[ffn](d_ff, d_model, seed=rng, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        fused = kernels.fused("feed_forward", x, context)
        if fused is not None:
            y, cache = fused(x, *self._maps(), self._activation, context)
            return y, ("fused", cache)
        before, expand_cache = self.expand.forward(x, context)  # [.., d_model] -> [.., d_ff]
        hidden, activation_cache = self.activation.forward(before, context)
        y, contract_cache = self.contract.forward(hidden, context)  # [.., d_ff] -> [.., d_model]
        return y, ("layers", (expand_cache, activation_cache, contract_cache))

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        way, saved = cache
        if way == "fused":
            dx: Array
            dx, *dmaps = kernels.backward(dy, saved)
            self._add(dmaps, gradients)
            return dx
        return self.expand.backward(self._dbefore(dy, saved, gradients), saved[0], gradients)

    def backward_parameters(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        way, saved = cache
        if way == "fused":
            _, *dmaps = kernels.backward(dy, saved, of_input=False)
            self._add(dmaps, gradients)
            return
        self.expand.backward_parameters(self._dbefore(dy, saved, gradients), saved[0], gradients)

    def _dbefore(self, dy: Array, saved: Any, gradients: Gradients) -> Array:
        """Return the gradient of what the activation takes."""
        _, activation_cache, contract_cache = saved
        dhidden = self.contract.backward(dy, contract_cache, gradients)
        return self.activation.backward(dhidden, activation_cache, gradients)

    def _add(self, dmaps: list[Array], gradients: Gradients) -> None:
        for parameter, gradient in zip(self._parameters(), dmaps, strict=True):
            gradients.add(parameter, gradient.reshape(parameter.shape))

    def _parameters(self) -> tuple[Parameter, ...]:
        assert self.expand.bias is not None
        assert self.contract.bias is not None
        return self.expand.weight, self.expand.bias, self.contract.weight, self.contract.bias

    def _maps(self) -> list[Array]:
        """Return W1, b1, W2 and b2 as matrices and vectors: a kernel of size 1 has an axis more."""
        return [p.value if p.value.ndim < 3 else p.value[0] for p in self._parameters()]
