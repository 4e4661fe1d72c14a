"""LayerNorm: each position gets mean 0 and variance 1, then a scale and a shift."""

from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Parameter,
    checks,
    initializers,
    value_of,
)


class LayerNorm(Layer):
    """y = gamma (x - mean) / sqrt(var + eps) + beta over the features.

    Parameters
    ----------
    d_model : int
    eps : float
        Keeps a constant row finite.
    bias : bool
        Whether there is a beta.

    Attributes
    ----------
    gamma : Parameter, shape (d_model,)
        The scale, initially 1.
    beta : Parameter, shape (d_model,), or None
        The shift, initially 0.
    """

    def __init__(
        self, d_model: int, eps: float = 1e-5, *, bias: bool = True, dtype: str = "float32"
    ) -> None:
        checks.positive("d_model", d_model)
        checks.flag("bias", bias)
        self.eps = checks.number("eps", eps, above=0.0)
        self.gamma = Parameter(initializers.draw(initializers.ones, None, (d_model,), dtype))
        beta = initializers.draw(initializers.zeros, None, (d_model,), dtype)
        self.beta: Any = Parameter(beta) if bias else None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.layer_norm(x, self.gamma.value, value_of(self.beta), self.eps)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dgamma, *dbeta = F.layer_norm_backward(dy, cache)
        gradients.add_each((self.gamma, self.beta), (dgamma, *dbeta))
        return dx
