"""Layers: the functions of `functional`, with parameters.

A layer that draws weights takes a `seed`, which is a whole number or a NumPy generator, and a
`dtype`, "float32" or "float64".
"""

from npformer.core.support.missing_names import lead_to_names
from npformer.layers.activation import ACTIVATIONS, GELU, ReLU, SiLU, Tanh
from npformer.layers.conv1d import Conv1d
from npformer.layers.cross_attention import BlockwiseCrossAttention, CrossAttention
from npformer.layers.dropout import Dropout, TokenDropout
from npformer.layers.embedding import Embedding, Positions, TiedOutput, TokenTypes
from npformer.layers.feed_forward import FFNS, PositionwiseFeedForward
from npformer.layers.gated import GatedFeedForward
from npformer.layers.layer_norm import LayerNorm
from npformer.layers.linear import Linear
from npformer.layers.pooling import (
    POOLINGS,
    ChosenTokens,
    EveryToken,
    FirstToken,
    Flatten,
    MaxPooling,
    MeanPooling,
    Pooler,
    Pooling,
)
from npformer.layers.rms_norm import NORMS, RMSNorm
from npformer.layers.sequential import Sequential
from npformer.layers.time_distributed import TimeDistributed

__all__ = [
    "ACTIVATIONS",
    "FFNS",
    "GELU",
    "NORMS",
    "POOLINGS",
    "BlockwiseCrossAttention",
    "ChosenTokens",
    "Conv1d",
    "CrossAttention",
    "Dropout",
    "Embedding",
    "EveryToken",
    "FirstToken",
    "Flatten",
    "GatedFeedForward",
    "LayerNorm",
    "Linear",
    "MaxPooling",
    "MeanPooling",
    "Pooler",
    "Pooling",
    "Positions",
    "PositionwiseFeedForward",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Tanh",
    "TiedOutput",
    "TimeDistributed",
    "TokenDropout",
    "TokenTypes",
]

lead_to_names(__name__)
