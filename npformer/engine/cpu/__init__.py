"""Kernels for NumPy arrays: they reuse memory, sum by matrix products, and work in the cache.

A kernel takes the arguments of the function in `npformer.functional` that it replaces, and a
context that lends memory and threads. The first line of its docstring names that function. Its
operations on rows are leaves, which have two bodies: NumPy's passes, and a loop for numba.
docs/performance.md lists how much time each idea saves.
"""

from typing import Any

from npformer.engine.cpu.adam import adam_update_kernel
from npformer.engine.cpu.attention import attention_heads, attention_heads_backward
from npformer.engine.cpu.dense_synthesizer import dense_heads, dense_heads_backward
from npformer.engine.cpu.dropout import dropout, dropout_backward
from npformer.engine.cpu.embedding import embedding, embedding_backward
from npformer.engine.cpu.feed_forward import feed_forward, feed_forward_backward
from npformer.engine.cpu.fourier import fourier_mixing, fourier_mixing_backward
from npformer.engine.cpu.gated import gated_feed_forward, gated_feed_forward_backward
from npformer.engine.cpu.linear import linear, linear_backward
from npformer.engine.cpu.loops import use_loops
from npformer.engine.cpu.losses import softmax_cross_entropy, softmax_cross_entropy_backward
from npformer.engine.cpu.norms import (
    layer_norm,
    norm_backward,
    residual_norm,
    residual_norm_backward,
    rms_norm,
)
from npformer.engine.cpu.short_samples import (
    short_attention,
    short_dense_synthesizer,
    short_network,
)

KERNELS: dict[str, Any] = {
    "attention_heads": (attention_heads, attention_heads_backward),
    "dense_heads": (dense_heads, dense_heads_backward),
    "dropout": (dropout, dropout_backward),
    "embedding": (embedding, embedding_backward),
    "feed_forward": (feed_forward, feed_forward_backward),
    "fourier_mixing": (fourier_mixing, fourier_mixing_backward),
    "gated_feed_forward": (gated_feed_forward, gated_feed_forward_backward),
    "layer_norm": (layer_norm, norm_backward),
    "linear": (linear, linear_backward),
    "residual_norm": (residual_norm, residual_norm_backward),
    "rms_norm": (rms_norm, norm_backward),
    "short_attention": (short_attention, None),
    "short_dense_synthesizer": (short_dense_synthesizer, None),
    "short_network": (short_network, None),
    "softmax_cross_entropy": (softmax_cross_entropy, softmax_cross_entropy_backward),
}
"""By the name of the pair that each replaces. A kernel for several pairs has its own name.
One without a backward pass is for evaluation only."""

WHY_NO_LOOPS = use_loops()
"""Why leaves run NumPy's passes; empty if they run their loops."""

UPDATES = {"adam_update": adam_update_kernel}
"""Functions without a backward pass, by the name of the plain function that each replaces."""
