"""The position-wise feed-forward network."""

from __future__ import annotations

from functools import partial
from typing import Any

from npformer.core import (
    INITIALIZERS,
    Array,
    Context,
    Gradients,
    Layer,
    Registry,
    Seed,
    checks,
    initializers,
)
from npformer.layers.activation import ACTIVATIONS
from npformer.layers.conv1d import Conv1d
from npformer.layers.linear import Linear

MAPS: dict[str, type[Linear] | type[Conv1d]] = {"linear": Linear, "conv1d": Conv1d}


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
    initializer : str
        A name in `INITIALIZERS`: what both matrices are drawn from.
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
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.choice("ffn", ffn, MAPS)
        rng, init = initializers.generator(seed), INITIALIZERS.make(initializer)
        self.expand = MAPS[ffn](d_model, d_ff, seed=rng, dtype=dtype, init=init)
        self.activation = ACTIVATIONS.make(activation)
        self.contract = MAPS[ffn](d_ff, d_model, seed=rng, dtype=dtype, init=init)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        before, expand_cache = self.expand.forward(x, context)  # [.., d_model] -> [.., d_ff]
        hidden, activation_cache = self.activation.forward(before, context)
        y, contract_cache = self.contract.forward(hidden, context)  # [.., d_ff] -> [.., d_model]
        return y, (expand_cache, activation_cache, contract_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        expand_cache, activation_cache, contract_cache = cache
        dhidden = self.contract.backward(dy, contract_cache, gradients)
        dbefore = self.activation.backward(dhidden, activation_cache, gradients)
        return self.expand.backward(dbefore, expand_cache, gradients)


FFNS: Registry[Layer] = Registry(
    "feed-forward network",
    {
        "linear": PositionwiseFeedForward,
        "conv1d": partial(PositionwiseFeedForward, ffn="conv1d"),
    },
    table="npformer.layers.FFNS",
    makes=Layer,
    gets="d_model, d_ff, activation, seed=, dtype=, initializer= and their options",
)
"""What ``EncoderConfig(ffn=...)`` takes. Builders are called with d_model, d_ff, the activation's
name and, as keywords, seed, dtype and the initializer's name; they return a layer that keeps the
shape."""
