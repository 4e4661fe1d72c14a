"""The gated feed-forward network: one map decides how much of another passes."""

from typing import Any

from npformer.core import Array, checks
from npformer.functional import activations
from npformer.functional.linear import linear, linear_backward

GATES = ("relu", "gelu", "silu", "tanh", "sigmoid")
"""Names of `functional` that a gate may be."""


def gated(
    x: Array, W_gate: Array, W_up: Array, W_down: Array, activation: str = "silu"
) -> tuple[Array, Any]:
    """y = (activation(x W_gate) * (x W_up)) W_down (Shazeer, 2020, arXiv 2002.05202).

    With "silu" this is SwiGLU, with "gelu" GEGLU, with "sigmoid" the gated linear unit of Dauphin
    et al. (2017). Three matrices instead of two: with the same number of weights d_ff is two thirds
    as large.

    Parameters
    ----------
    x : array, shape (..., d_model)
    W_gate, W_up : array, shape (d_model, d_ff)
    W_down : array, shape (d_ff, d_model)
    activation : {"silu", "gelu", "relu", "tanh", "sigmoid"}
    """
    checks.choice("activation", activation, GATES)
    before, gate_cache = linear(x, W_gate)  # [..., d_ff]
    up, up_cache = linear(x, W_up)  # [..., d_ff]
    checks.shape("W_up", W_up, W_gate.shape, "The gate has one number for each feature")
    # by which each unit is multiplied [..., d_ff]
    gate, activation_cache = getattr(activations, activation)(before)
    y, down_cache = linear(gate * up, W_down)  # [..., d_model]
    return y, (gate, up, activation, activation_cache, (gate_cache, up_cache, down_cache))


def gated_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array, Array]:
    """Gradients: dx, dW_gate, dW_up, dW_down.

    Each factor of a product gets the product's gradient times the other factor. x is used twice, so
    its gradient is a sum.
    """
    gate, up, activation, activation_cache, (gate_cache, up_cache, down_cache) = cache
    # y = (gate * up) W_down
    dhidden, dW_down = linear_backward(dy, down_cache)
    dx_up, dW_up = linear_backward(dhidden * gate, up_cache)  # dup = dhidden * gate
    # gate = activation(x W_gate)
    dbefore = getattr(activations, f"{activation}_backward")(dhidden * up, activation_cache)
    dx_gate, dW_gate = linear_backward(dbefore, gate_cache)  # x once more
    return dx_gate + dx_up, dW_gate, dW_up, dW_down  # x was used by both maps
