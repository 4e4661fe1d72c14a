"""RMSNorm: each position gets a root mean square of 1, then a scale; and the table of norms."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Parameter, Registry, checks
from npformer.core import initializers as init
from npformer.layers.layer_norm import LayerNorm


class RMSNorm(Layer):
    """y = gamma x / sqrt(mean(x^2) + eps) over the features (Zhang and Sennrich, 2019).

    Parameters
    ----------
    d_model : int
    eps : float
        Keeps a row of zeros finite.

    Attributes
    ----------
    gamma : Parameter, shape (d_model,)
        The scale, initially 1.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, *, dtype: str = "float32") -> None:
        checks.positive("d_model", d_model)
        self.eps = checks.number("eps", eps, above=0.0)
        self.gamma = Parameter(init.draw(init.ones, None, (d_model,), dtype))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.rms_norm(x, self.gamma.value, self.eps)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dgamma = F.rms_norm_backward(dy, cache)
        gradients.add(self.gamma, dgamma)
        return dx


NORMS: Registry[Layer] = Registry(
    "norm",
    {"layer": LayerNorm, "rms": RMSNorm},
    table="npformer.layers.NORMS",
    makes=Layer,
    gets="d_model, eps, dtype= and their options",
)
"""What ``EncoderConfig(norm_kind=...)`` takes. A builder is called with d_model, eps and dtype=,
and returns a layer that keeps the shape, with a parameter `gamma`, the scale."""
