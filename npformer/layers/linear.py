"""Linear: y = x W + b."""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Initializer,
    Layer,
    Parameter,
    Seed,
    checks,
    initializers,
)


class Linear(Layer):
    """y = x W + b, the same map for every position.

    Parameters
    ----------
    d_in, d_out : int
        Features in and out.
    bias : bool
        Whether there is a b.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    init : callable
        ``init(generator, shape) -> array`` for the weights; Glorot's uniform if not given.

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
        seed: Seed,
        dtype: str = "float32",
        init: Initializer = initializers.xavier_uniform,
    ) -> None:
        checks.positive("d_in", d_in)
        checks.positive("d_out", d_out)
        rng = initializers.generator(seed)
        self.weight = Parameter(initializers.draw(init, rng, (d_in, d_out), dtype))
        self.bias = (
            Parameter(initializers.draw(initializers.zeros, rng, (d_out,), dtype)) if bias else None
        )

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        b = None if self.bias is None else self.bias.value
        return F.linear(x, self.weight.value, b)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW, *db = F.linear_backward(dy, cache)
        gradients.add(self.weight, dW)
        if self.bias is not None:
            gradients.add(self.bias, *db)
        return dx
