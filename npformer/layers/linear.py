"""Linear: y = x W + b."""

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


class Linear(Layer):
    """y = x W + b, the same map for every position.

    Parameters
    ----------
    d_in, d_out : int
        Features in and out.
    bias : bool
        Whether there is a b. It is 0 at first.
    init : callable
        ``init(generator, shape) -> array`` draws the weights.

    Attributes
    ----------
    weight : Parameter, shape (d_in, d_out)
    bias : Parameter, shape (d_out,), or None
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        *,
        bias: bool = True,
        seed: Seed = None,
        dtype: str = "float32",
        init: initializers.Initializer = initializers.xavier_uniform,
    ) -> None:
        checks.positive("d_in", d_in)
        checks.positive("d_out", d_out)
        checks.flag("bias", bias)
        rng = generators.from_seed(seed)
        self.weight = Parameter(initializers.draw(init, rng, (d_in, d_out), dtype))
        b = initializers.draw(initializers.zeros, rng, (d_out,), dtype)
        self.bias = Parameter(b) if bias else None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.linear(x, self.weight.value, value_of(self.bias))

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW, *db = F.linear_backward(dy, cache)
        gradients.add_each((self.weight, self.bias), (dW, *db))
        return dx
