"""Activations as layers, and the table that names them."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Registry, checks
from npformer.core.support.explained_errors import drop_class_from_names


@drop_class_from_names
class Activation(Layer):
    """y = f(x), entry by entry; `pair` has f and its backward pass."""

    pair: tuple[Any, Any]

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.pair[0](x)  # type: ignore[no-any-return]

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return self.pair[1](dy, cache)


class ReLU(Activation):
    """y = max(0, x)."""

    pair = F.relu, F.relu_backward


class GELU(Activation):
    """y = x Phi(x), or its tanh form.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        "none" is exact, with the normal distribution; "tanh" is what the published code of BERT
        and FNet computes.
    """

    pair = F.gelu, F.gelu_backward

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = checks.choice("approximate", approximate, ("none", "tanh"))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.gelu(x, approximate=self.approximate)


class Tanh(Activation):
    """y = tanh(x)."""

    pair = F.tanh, F.tanh_backward


class SiLU(Activation):
    """y = x sigmoid(x)."""

    pair = F.silu, F.silu_backward


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
"""What ``EncoderConfig(activation=...)`` takes. A builder is called with the options alone and
returns a layer."""
