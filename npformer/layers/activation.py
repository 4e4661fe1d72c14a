"""Activations as layers, and the table that names them."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Registry, checks


class ReLU(Layer):
    """y = max(0, x)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.relu(x)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.relu_backward(dy, cache)


class GELU(Layer):
    """y = x Phi(x), or its tanh form.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        "none" is exact, with erf; "tanh" is what the published code of BERT and FNet computes.
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = checks.choice("approximate", approximate, ("none", "tanh"))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.gelu(x, approximate=self.approximate)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.gelu_backward(dy, cache)


class Tanh(Layer):
    """y = tanh(x)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.tanh(x)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.tanh_backward(dy, cache)


class SiLU(Layer):
    """y = x sigmoid(x)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.silu(x)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.silu_backward(dy, cache)


ACTIVATIONS: Registry[Layer] = Registry(
    "activation",
    {
        "relu": ReLU,
        "gelu": GELU,
        "gelu_tanh": lambda: GELU("tanh"),
        "silu": SiLU,
        "tanh": Tanh,
    },
    table="npformer.layers.ACTIVATIONS",
    makes=Layer,
    hint=False,  # relu2 and selu are other functions, not relu misspelt
)
"""What ``EncoderConfig(activation=...)`` takes. Builders get nothing but their options, and return
a layer."""
