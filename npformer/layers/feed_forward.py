"""The position-wise feed-forward network."""

from functools import partial
from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Registry,
    Seed,
    checks,
    generators,
    initializers,
)
from npformer.layers.activation import ACTIVATIONS
from npformer.layers.conv1d import Conv1d
from npformer.layers.dropout import Dropout
from npformer.layers.gated import GatedFeedForward
from npformer.layers.linear import Linear
from npformer.layers.sequential import Sequential

MAPS: dict[str, type[Linear] | type[Conv1d]] = {"linear": Linear, "conv1d": Conv1d}


class PositionwiseFeedForward(Layer):
    """FFN(x) = activation(x W1 + b1) W2 + b2, for each position separately and identically.

    Equation (2) of Vaswani et al. (2017), who add: "Another way of describing this is as two
    convolutions with kernel size 1." `ffn` chooses between the two. For one seed they have the same
    weights, up to an axis of length 1, and give the same numbers at the same cost.

    Parameters
    ----------
    d_model, d_ff : int
        Features in and out, and features in between.
    activation : str
        A name in `ACTIVATIONS`; the paper has "relu".
    ffn : {"linear", "conv1d"}
        Linear maps, or convolutions with kernel size 1.
    bias : bool
        Whether the two maps have a bias.
    initializer : str
        A name in `INITIALIZERS`: what both matrices are drawn from.
    dropout : float
        Probability of dropping one of the d_ff features while training, after the activation.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        *,
        ffn: str = "linear",
        bias: bool = True,
        initializer: str = "xavier_uniform",
        dropout: float = 0.0,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        checks.choice("ffn", ffn, MAPS)
        d_model = checks.positive("d_model", d_model)
        d_ff = checks.positive("d_ff", d_ff)
        rng = generators.from_seed(seed)
        init = initializers.INITIALIZERS.make(initializer)
        linear_map = MAPS[ffn]
        self.expand = linear_map(d_model, d_ff, bias=bias, seed=rng, dtype=dtype, init=init)
        self.activation = ACTIVATIONS.make(activation)
        self.dropout = checks.rate("dropout", dropout)
        self.contract = linear_map(d_ff, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        hidden, expand_cache = self.expand.forward(x, context)  # [..., d_ff]
        active, activation_cache = self.activation.forward(hidden, context)
        dropped, dropout_cache = Dropout(self.dropout).forward(active, context)
        y, contract_cache = self.contract.forward(dropped, context)  # [..., d_model]
        return y, (expand_cache, activation_cache, dropout_cache, contract_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        expand_cache, activation_cache, dropout_cache, contract_cache = cache
        ddropped = self.contract.backward(dy, contract_cache, gradients)
        dactive = Dropout(self.dropout).backward(ddropped, dropout_cache, gradients)
        dhidden = self.activation.backward(dactive, activation_cache, gradients)
        return self.expand.backward(dhidden, expand_cache, gradients)


def _no_layers(d_model: int, d_ff: int, activation: str, **options: Any) -> Sequential:
    """Return a network without layers: its output is its input."""
    return Sequential()


FFNS: Registry[Layer] = Registry(
    "feed-forward network",
    {
        "linear": PositionwiseFeedForward,
        "conv1d": partial(PositionwiseFeedForward, ffn="conv1d"),
        "gated": GatedFeedForward,
        "none": _no_layers,
    },
    table="npformer.layers.FFNS",
    makes=Layer,
    gets="d_model, d_ff, activation, seed=, dtype=, initializer= and their options",
)
"""What ``EncoderConfig(ffn=...)`` takes. Builders get d_model, d_ff, the activation's name and, as
keywords, seed, dtype and the initializer's name; also dropout and ``bias=False``, if the
configuration sets them. They return a layer that keeps the shape. With "none" an `EncoderBlock` has
no second sublayer."""
