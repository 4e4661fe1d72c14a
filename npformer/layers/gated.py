"""The gated feed-forward network (Shazeer, 2020)."""

from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    checks,
    generators,
    initializers,
)
from npformer.layers.activation import ACTIVATIONS
from npformer.layers.dropout import Dropout
from npformer.layers.linear import Linear


class GatedFeedForward(Layer):
    """y = (activation(x W_gate + b_gate) * (x W_up + b_up)) W_down + b_down.

    With "silu" it is called SwiGLU, with "gelu" GEGLU (arXiv 2002.05202). The function is
    `functional.gated`, with biases.

    Parameters
    ----------
    d_model, d_ff : int
        Features in and out, and features in between. Three matrices have as many weights as a
        network's two if d_ff is two thirds as large.
    activation : str
        A name in `ACTIVATIONS`.
    bias : bool
        Whether the three maps have a bias.
    initializer : str
        A name in `INITIALIZERS`: what all three matrices are drawn from.
    dropout : float
        Probability of dropping one of the d_ff products while training.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "silu",
        *,
        bias: bool = True,
        initializer: str = "xavier_uniform",
        dropout: float = 0.0,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        d_model = checks.positive("d_model", d_model)
        d_ff = checks.positive("d_ff", d_ff)
        rng = generators.from_seed(seed)
        init = initializers.INITIALIZERS.make(initializer)
        self.gate = Linear(d_model, d_ff, bias=bias, seed=rng, dtype=dtype, init=init)
        self.up = Linear(d_model, d_ff, bias=bias, seed=rng, dtype=dtype, init=init)
        self.activation = ACTIVATIONS.make(activation)
        self.dropout = Dropout(dropout)
        self.down = Linear(d_ff, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        gate_input, gate_cache = self.gate.forward(x, context)  # [..., d_ff]
        gate, activation_cache = self.activation.forward(gate_input, context)
        up, up_cache = self.up.forward(x, context)
        hidden, dropout_cache = self.dropout.forward(gate * up, context)
        y, down_cache = self.down.forward(hidden, context)
        caches = gate_cache, activation_cache, up_cache, dropout_cache, down_cache
        return y, (gate, up, caches)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        gate, up, caches = cache
        gate_cache, activation_cache, up_cache, dropout_cache, down_cache = caches
        dhidden = self.down.backward(dy, down_cache, gradients)
        dproduct = self.dropout.backward(dhidden, dropout_cache, gradients)
        # each factor gets the product's gradient times the other factor
        dx_up = self.up.backward(dproduct * gate, up_cache, gradients)
        dgate_input = self.activation.backward(dproduct * up, activation_cache, gradients)
        dx_gate = self.gate.backward(dgate_input, gate_cache, gradients)
        return dx_up + dx_gate  # x is used twice, so its gradient is a sum
