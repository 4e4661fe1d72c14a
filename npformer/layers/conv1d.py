"""Conv1d: a convolution over the sequence, channels last."""

from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Parameter,
    Seed,
    checks,
    generators,
    initializers,
    value_of,
)


class Conv1d(Layer):
    """y_t = sum_k x_{t+k-p} W_k + b; p is (kernel - 1) // 2 with padding "same", 0 with "valid".

    With ``kernel=1`` this is `Linear`, value for value and at the same cost.

    Parameters
    ----------
    d_in, d_out, kernel : int
        Channels in and out, and how many positions one output sees.
    padding : {"same", "valid"}
        "same" keeps the length; "valid" does not pad.
    bias, init
        As in `Linear`.

    Attributes
    ----------
    weight : Parameter, shape (kernel, d_in, d_out)
    bias : Parameter, shape (d_out,), or None
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        kernel: int = 1,
        *,
        padding: str = "same",
        bias: bool = True,
        seed: Seed = None,
        dtype: str = "float32",
        init: initializers.Initializer = initializers.xavier_uniform,
    ) -> None:
        checks.positive("d_in", d_in)
        checks.positive("d_out", d_out)
        checks.positive("kernel", kernel)
        checks.flag("bias", bias)
        rng = generators.from_seed(seed)
        self.padding = checks.choice("padding", padding, ("same", "valid"))
        self.weight = Parameter(initializers.draw(init, rng, (kernel, d_in, d_out), dtype))
        b = initializers.draw(initializers.zeros, rng, (d_out,), dtype)
        self.bias = Parameter(b) if bias else None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.conv1d(x, self.weight.value, value_of(self.bias), padding=self.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW, *db = F.conv1d_backward(dy, cache)
        gradients.add_each((self.weight, self.bias), (dW, *db))
        return dx
