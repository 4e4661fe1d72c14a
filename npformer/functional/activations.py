"""Elementwise non-linear maps: ReLU, GELU, SiLU, tanh, sigmoid. y and dx have the shape of x."""

import math
from typing import Any

from npformer.core import Array, checks
from npformer.functional.normal import normal_density, normal_distribution


def relu(x: Array) -> tuple[Array, Any]:
    """y = max(0, x)."""
    xp = checks.floating(x=x)
    y = xp.maximum(x, 0.0)  # NaN stays NaN
    return y, y  # y alone says where x was positive


def relu_backward(dy: Array, cache: Any) -> Array:
    """dx = dy where x > 0, else 0.

    y = x has the derivative 1, y = 0 the derivative 0. At x = 0 there is none: the slopes on the
    two sides are 0 and 1, and dx = 0 as in PyTorch.
    """
    y = cache
    checks.gradient(dy, y.shape)
    return dy * (y > 0.0)  # y > 0 exactly where x > 0


def gelu(x: Array, approximate: str = "none") -> tuple[Array, Any]:
    """y = x Phi(x), the Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    Parameters
    ----------
    x : array, any shape
    approximate : {"none", "tanh"}
        "none": Phi(x) is the normal distribution function, (1 + erf(x / sqrt 2)) / 2.
        "tanh": Phi(x) = (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), the form that
        BERT's and FNet's published code uses.
    """
    checks.floating(x=x)
    if str(approximate) == "none":
        phi = normal_distribution(x)  # the probability that a standard normal number is below x
        return x * phi, ("none", x, phi)
    checks.choice("approximate", approximate, ("none", "tanh"))
    # x * x * x, because a power of an array is slow.
    u = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
    phi, _ = sigmoid(2.0 * u)  # equals (1 + tanh(u)) / 2, which would cancel in the tail
    return x * phi, ("tanh", x, phi)


def gelu_backward(dy: Array, cache: Any) -> Array:
    """dx = dy (Phi(x) + x Phi'(x)), the product rule.

    Phi is the area under the normal density, up to x, so Phi' is this density at x. In the tanh
    form Phi is sigmoid(2 u), and Phi' = 2 Phi (1 - Phi) u', u' = sqrt(2 / pi) (1 + 3 0.044715 x^2).
    """
    form, x, phi = cache
    checks.gradient(dy, x.shape)
    if form == "none":
        # y = x * phi(x)
        return dy * (phi + x * normal_density(x))  # the product rule
    # phi = sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3))
    du = math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * (x * x))
    # y = x * phi(x)
    return dy * (phi + x * (phi * (1.0 - phi)) * (2.0 * du))


def tanh(x: Array) -> tuple[Array, Any]:
    """y = tanh(x)."""
    xp = checks.floating(x=x)
    y = xp.tanh(x)  # -1 to 1
    return y, y  # the derivative, 1 - y^2, needs no x


def tanh_backward(dy: Array, cache: Any) -> Array:
    """dx = dy (1 - y^2): tanh = sinh / cosh, whose derivative is (cosh^2 - sinh^2) / cosh^2."""
    y = cache
    checks.gradient(dy, y.shape)
    return dy * (1.0 - y * y)  # at most 1, at x = 0


def sigmoid(x: Array) -> tuple[Array, Any]:
    """y = 1 / (1 + exp(-x))."""
    xp = checks.floating(x=x)
    # exp(-|x|) cannot overflow. For x < 0, y = exp(x) / (1 + exp(x)) keeps all digits near 0.
    e = xp.exp(-xp.abs(x))
    y = xp.where(x >= 0.0, 1.0, e) / (1.0 + e)  # 0 to 1
    rest = xp.where(x >= 0.0, e, 1.0) / (1.0 + e)  # 1 - y, with all digits where y is near 1
    return y, (y, rest)  # the derivative, y (1 - y), needs no x


def sigmoid_backward(dy: Array, cache: Any) -> Array:
    """dx = dy y (1 - y): the derivative is exp(-x) / (1 + exp(-x))^2, and 1 - y = exp(-x) y."""
    y, rest = cache
    checks.gradient(dy, y.shape)
    return dy * (y * rest)  # at most 1/4, at x = 0


def silu(x: Array) -> tuple[Array, Any]:
    """y = x sigmoid(x), also called swish (Ramachandran et al., 2017)."""
    s, _ = sigmoid(x)  # how much of x passes
    return x * s, (x, s)


def silu_backward(dy: Array, cache: Any) -> Array:
    """dx = dy (s + x s (1 - s)) with s = sigmoid(x): the product rule."""
    x, s = cache
    checks.gradient(dy, x.shape)
    # y = x * s
    return dy * (s + x * (s * (1.0 - s)))
