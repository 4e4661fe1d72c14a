"""What a layer is called in a step, and its formulas, forward and backward."""

from __future__ import annotations

from npformer.core import Layer
from npformer.layers import (
    GELU,
    Conv1d,
    CrossAttention,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Pooling,
    Positions,
    ReLU,
)
from npformer.mixers import Attention, Fourier, Mixer

NAMES = {
    "query": "W_Q",
    "key": "W_K",
    "value": "W_V",
    "expand": "W₁",
    "contract": "W₂",
    "classify": "classify",
    "tokens": "embed",
}
"""Titles of linear maps, by the last part of their dotted names."""

FORMULAS: dict[type, tuple[str, str, str]] = {
    Linear: ("linear", "y = x W + b", "dx = dy Wᵀ,  dW = xᵀ dy,  db = Σ dy"),
    Conv1d: ("conv1d", "y = x W + b", "dx = dy Wᵀ,  dW = xᵀ dy,  db = Σ dy"),
    Embedding: ("embed", "y = W[x]", "dW[x] += dy"),
    LayerNorm: (
        "norm",
        "y = γ (x − μ) / √(σ² + ε) + β",
        "dx = (g − mean(g) − x̂ mean(g x̂)) / σ,  g = γ dy",
    ),
    ReLU: ("ReLU", "y = max(x, 0)", "dx = dy where x > 0, else 0"),
    GELU: ("GELU", "y = x Φ(x)", "dx = dy (Φ(x) + x φ(x))"),
    Positions: ("positions", "y = x + P", "dP = Σ dy,  dx = dy"),
    Pooling: ("pool", "y = one vector of all tokens", "each token gets its share of dy"),
    Fourier: ("Fourier", "y = Re(F_length x F_features)", "dx = Re(F_length dy F_features)"),
    Mixer: ("mix", "y = A V", "dV = Aᵀ dy,  dA = dy Vᵀ"),
}

SOFTMAX_ATTENTION = "A = softmax(Q Kᵀ / √d),  y = A V"

LEFT_OUT = (Dropout,)
"""Classes that do nothing at evaluation, without their subclasses."""


def words_of(name: str, layer: Layer) -> tuple[str, str, str]:
    """Return the title of a layer, and its formulas forward and backward."""
    title, forward, backward = type(layer).__name__, "", ""
    for kind in type(layer).__mro__:
        if kind in FORMULAS:
            title, forward, backward = FORMULAS[kind]
            break
    if isinstance(layer, Attention | CrossAttention):
        title, forward = "attention", SOFTMAX_ATTENTION
        backward = "dV = Aᵀ dy,  dS = A (dA − Σ dA A),  dA = dy Vᵀ"
    if not forward:
        forward = (type(layer).__doc__ or "").strip().partition("\n")[0]
        backward = "the gradients of its input and of its weights, from dy"
    if name == "output":  # of a model that writes
        title = "output"
    elif name.endswith(".output"):
        title = "W_O"
    return NAMES.get(name.rpartition(".")[2], title), forward, backward
