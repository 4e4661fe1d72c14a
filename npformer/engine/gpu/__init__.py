"""Kernels for CuPy arrays: fewer launches, fewer passes over memory, and sums in a fixed order.

The kernels themselves are CUDA, in the folder `cuda`, one idea per file. The functions here
allocate, launch, and leave large products to cuBLAS. They take the arguments of the function in
`npformer.functional` that the first line of each docstring names, and a context, which has the
padding mask and says whether a backward pass may follow. It lends no memory here, because CuPy has
its own pool.
"""

from collections.abc import Callable
from typing import Any

from npformer.engine.gpu.adam import adam_update_kernel, clip_by_global_norm_kernel
from npformer.engine.gpu.attention import attention_heads, attention_heads_backward
from npformer.engine.gpu.dense_synthesizer import dense_heads, dense_heads_backward
from npformer.engine.gpu.dropout import DeviceGenerator as DeviceGenerator
from npformer.engine.gpu.dropout import dropout, dropout_backward
from npformer.engine.gpu.embedding import embedding, embedding_backward
from npformer.engine.gpu.feed_forward import feed_forward, feed_forward_backward
from npformer.engine.gpu.fourier import fourier_mixing, fourier_mixing_backward
from npformer.engine.gpu.linear import linear, linear_backward
from npformer.engine.gpu.losses import softmax_cross_entropy, softmax_cross_entropy_backward
from npformer.engine.gpu.norms import (
    layer_norm,
    layer_norm_backward,
    residual_norm,
    residual_norm_backward,
)

KERNELS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "attention_heads": (attention_heads, attention_heads_backward),
    "dense_heads": (dense_heads, dense_heads_backward),
    "dropout": (dropout, dropout_backward),
    "embedding": (embedding, embedding_backward),
    "feed_forward": (feed_forward, feed_forward_backward),
    "fourier_mixing": (fourier_mixing, fourier_mixing_backward),
    "layer_norm": (layer_norm, layer_norm_backward),
    "linear": (linear, linear_backward),
    "residual_norm": (residual_norm, residual_norm_backward),
    "softmax_cross_entropy": (softmax_cross_entropy, softmax_cross_entropy_backward),
}
"""By the name of the pair that each replaces. A kernel for several pairs has its own name."""

UPDATES: dict[str, Callable[..., Any]] = {
    "adam_update": adam_update_kernel,
    "clip_by_global_norm": clip_by_global_norm_kernel,
}
"""Functions without a backward pass, by the name of the plain function that each replaces."""
