"""Fast layers: each computes what its plain class computes, by a kernel for the arrays' backend.

Without a kernel for the arrays, the plain class computes. The first lines of each kernel's file
tell how much time it saves, and docs/performance.md lists all savings.
"""

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, array_module, is_host_array
from npformer.engine.context import engine_context
from npformer.engine.twin_classes import (
    TABLE,
    ByKernel,
    Fast,
    FirstChild,
    Saved,
)
from npformer.functional.sums import sum_along
from npformer.layers import (
    BlockwiseCrossAttention,
    CrossAttention,
    Dropout,
    Embedding,
    LayerNorm,
    MeanPooling,
    Pooler,
    Positions,
    RMSNorm,
    Sequential,
    TimeDistributed,
    TokenTypes,
)


class FastDropout(ByKernel, Dropout):
    """`Dropout` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if not (self.rate > 0.0 and context.training):
            return super().forward(x, context)
        generator = context.dropout_generator()
        result = self.run("dropout", x, (), self.rate, generator, context=context)
        return result or super().forward(x, context)


class FastEmbedding(Fast, Embedding):
    """`Embedding` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        table = self.weight
        result = self.run("embedding", x, (table,), context=context, like=table.value)
        if result is None:
            return super().forward(x, context)
        y, saved = result
        if self.scale != 1.0:
            y *= self.scale  # in place: the kernel has just made it
        return y, saved

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        if type(cache) is not Saved:
            super().backward(dy, cache, gradients)
            return
        if not self.weight.trainable:
            return
        if self.scale != 1.0:
            dy = dy * self.scale
        if is_host_array(dy):
            from npformer.engine.cpu.embedding import (  # late: `kernel_tables`
                add_by_rows,
                add_to_rows,
            )

            ids = cache.cache[0].reshape(-1).astype(np.intp, copy=False)
            if add_by_rows(dy, ids, self.weight.value):
                add_to_rows(gradients.of(self.weight), ids, dy.reshape(len(ids), -1))
                return
        gradients.add(self.weight, cache.backward(dy, cache.cache))


class FastTokenTypes(FastEmbedding, TokenTypes):
    """`TokenTypes` by the kernel for `Embedding`, with its result in lent memory."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self._twins.kernel("embedding", x) is None or x.dtype != self.weight.dtype:
            return TokenTypes.forward(self, x, context)
        type_vectors, cache = FastEmbedding.forward(self, self.types_of(x, context), context)
        return array_module(x).add(x, type_vectors, out=type_vectors), cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        FastEmbedding.backward(self, dy, cache, gradients)
        return dy


class FastPositions(Fast, Positions):
    """`Positions` with its result in lent memory."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self._twins.kernel("linear", x) is None:
            return super().forward(x, context)
        length = self.length_of(x)
        out = engine_context(context).empty(x.shape, x)
        return array_module(x).add(x, self.table.value[:length], out=out), length


class FastLayerNorm(ByKernel, LayerNorm):
    """`LayerNorm` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self.beta is None and not is_host_array(x):
            return super().forward(x, context)  # on a GPU the kernel adds a beta
        result = self.run("layer_norm", x, (self.gamma, self.beta), self.eps, context=context)
        return result or super().forward(x, context)


class FastRMSNorm(ByKernel, RMSNorm):
    """`RMSNorm` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        result = self.run("rms_norm", x, (self.gamma,), self.eps, context=context)
        return result or super().forward(x, context)


class FastMeanPooling(Fast, MeanPooling):
    """`MeanPooling` without padding, and without the Python code of NumPy's `mean`."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        is_special = context.padding is not None or x.ndim != 3 or x.shape[1] == 0
        if is_special or self._twins.kernel("linear", x) is None:
            return super().forward(x, context)
        length = x.shape[1]
        y = sum_along(x, axis=1)
        y /= length
        return y, (1.0 / length, None, x.shape)


TABLE.add(Dropout, FastDropout)
TABLE.add(Embedding, FastEmbedding)
TABLE.add(Positions, FastPositions)
TABLE.add(TokenTypes, FastTokenTypes)
TABLE.add(LayerNorm, FastLayerNorm)
TABLE.add(RMSNorm, FastRMSNorm)
TABLE.add(MeanPooling, FastMeanPooling)
TABLE.add_container(Pooler, "first", "dense", "activation", "norm")
for attention in (CrossAttention, BlockwiseCrossAttention):
    TABLE.add_container(attention, "query", "key", "value", "output")
TABLE.add_container(Sequential, "chain", chain=FirstChild())
TABLE.add_container(TimeDistributed, "layer", layer=FirstChild())
