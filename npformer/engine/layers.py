"""Fast layers: each computes what its plain class computes, with the kernels of its tree's backend.

What a kernel saved goes back to that kernel. Where there is none for the arrays at hand, a layer
runs as its plain class does. What each kernel gains is said at the head of its file, and in
docs/performance.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, Layer, Parameter, array_module
from npformer.engine.context import adopted
from npformer.engine.twins import TABLE, Child, Children, Fast, FirstChild, FirstOfChildren, Saved
from npformer.layers import (
    GELU,
    Conv1d,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    MeanPooling,
    Pooler,
    Positions,
    PositionwiseFeedForward,
    ReLU,
    Sequential,
    Tanh,
    TimeDistributed,
    TokenTypes,
)

FEW = 1 << 14
"""Entries of a table's gradient up to which rows are added one by one on a CPU: making a sparse
matrix of them, and a whole table, takes longer."""


def stock(layer: Any, kind: type) -> bool:
    """Return whether a layer is exactly of this class and has no pass of its very own."""
    if type(layer) is not kind:
        return False
    attributes = layer.__dict__
    return "forward" not in attributes and "backward" not in attributes


def of_vectors(layer: Any) -> tuple[Parameter, Parameter] | None:
    """Return weight and bias of a stock map of single vectors; None for any other layer.

    A convolution with kernel size 1 is one. Whoever passes over a layer asks at each call.
    """
    if stock(layer, Linear) or (stock(layer, Conv1d) and layer.weight.shape[0] == 1):
        bias = layer.bias
        return None if bias is None else (layer.weight, bias)
    return None


def matrix(weight: Parameter) -> Array:
    """Return the matrix of `of_vectors`: a kernel of size 1 has an axis more."""
    value = weight.value
    return value if value.ndim < 3 else value[0]


class FastLinear(Fast, Linear):
    """`Linear` by a kernel."""

    __slots__ = ()
    of_input = True

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("linear", x)
        if kernel is None:
            return super().forward(x, context)
        b = self.bias
        b = None if b is None else b.value
        y, cache = kernel[0](x, self.weight.value, b, context=adopted(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array
        dx, dW, *db = cache.backward(dy, cache.cache, of_input=self.of_input)
        gradients.add(self.weight, dW)
        if self.bias is not None:
            gradients.add(self.bias, *db)
        return dx


class FirstLinear(FastLinear):
    """The first layer of a model."""

    __slots__ = ()
    of_input = False


class FastConv1d(Fast, Conv1d):
    """`Conv1d` with kernel size 1 by the kernel of `Linear`: one product, and no copy of x."""

    __slots__ = ()
    of_input = True

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W = self.weight.value
        kernel = self._twins.kernel("linear", x) if len(W) == 1 and x.ndim == 3 else None
        if kernel is None:
            return super().forward(x, context)
        b = self.bias
        b = None if b is None else b.value
        y, cache = kernel[0](x, W[0], b, context=adopted(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array
        dx, dW, *db = cache.backward(dy, cache.cache, of_input=self.of_input)
        gradients.add(self.weight, dW[None])
        if self.bias is not None:
            gradients.add(self.bias, *db)
        return dx


class FirstConv1d(FastConv1d):
    """The first layer of a model."""

    __slots__ = ()
    of_input = False


class FastDropout(Fast, Dropout):
    """`Dropout` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("dropout", x) if self.rate > 0.0 and context.training else None
        if kernel is None:  # or nothing to drop
            return super().forward(x, context)
        y, cache = kernel[0](x, self.rate, context.draws(), context=adopted(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array = cache.backward(dy, cache.cache)
        return dx


class FastEmbedding(Fast, Embedding):
    """`Embedding` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        table = self.weight.value
        kernel = self._twins.kernel("embedding", table)
        if kernel is None:
            return super().forward(x, context)
        y, cache = kernel[0](x, table, context=adopted(context))
        if self.scale != 1.0:
            y *= self.scale  # just made, by the kernel
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        if type(cache) is not Saved:
            super().backward(dy, cache, gradients)
            return
        dy = dy * self.scale
        if dy.size <= FEW and type(dy) is np.ndarray and self.weight.trainable:
            # Row by row into the sum itself: the rest of the table is not touched.
            ids, _ = cache.cache
            np.add.at(gradients.of(self.weight), ids, dy)
        else:
            gradients.add(self.weight, cache.backward(dy, cache.cache))


class FastTokenTypes(FastEmbedding, TokenTypes):
    """`TokenTypes` by the kernel of a table, and into memory that is lent."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self._twins.kernel("embedding", x) is None or x.dtype != self.weight.dtype:
            return TokenTypes.forward(self, x, context)
        of_type, cache = FastEmbedding.forward(self, self.types_of(x, context), context)
        return array_module(x).add(x, of_type, out=of_type), cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        FastEmbedding.backward(self, dy, cache, gradients)
        return dy


class FastPositions(Fast, Positions):
    """`Positions` into memory that is lent."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self._twins.kernel("linear", x) is None:
            return super().forward(x, context)
        length = self.length_of(x)
        out = adopted(context).empty(x.shape, x)
        return array_module(x).add(x, self.table.value[:length], out=out), length


class FastLayerNorm(Fast, LayerNorm):
    """`LayerNorm` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("layer_norm", x)
        if kernel is None:
            return super().forward(x, context)
        scale_and_shift = self.gamma.value, self.beta.value
        y, cache = kernel[0](x, *scale_and_shift, self.eps, context=adopted(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array
        dx, dgamma, dbeta = cache.backward(dy, cache.cache)
        gradients.add(self.gamma, dgamma)
        gradients.add(self.beta, dbeta)
        return dx


class FastFeedForward(Fast, PositionwiseFeedForward):
    """`PositionwiseFeedForward` as one kernel, where all three of its layers are as it expects."""

    __slots__ = ()
    of_input = True
    expand = Child()
    activation = Child()
    contract = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("feed_forward", x)
        found = None if kernel is None else self._passed_over()
        if kernel is None or found is None:
            return super().forward(x, context)
        if found[0][0].value.ndim + found[0][2].value.ndim > 4 and (x.ndim != 3 or 0 in x.shape):
            return super().forward(x, context)  # convolutions say what they do not take
        (W1, b1, W2, b2), activation = found
        maps = matrix(W1), b1.value, matrix(W2), b2.value
        y, cache = kernel[0](x, *maps, activation, adopted(context))
        return y, Saved(kernel[1], (cache, found[0]))

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        saved, parameters = cache.cache
        dx: Array
        dx, *dmaps = cache.backward(dy, saved, of_input=self.of_input)
        for parameter, gradient in zip(parameters, dmaps, strict=True):
            gradients.add(parameter, gradient.reshape(parameter.shape))
        return dx

    def passes_over(self) -> tuple[Any, ...]:
        return () if self._passed_over() is None else (self.__dict__["activation"],)

    def _passed_over(self) -> tuple[tuple[Parameter, ...], str] | None:
        """Return the parameters and the activation's name; None if a layer is not as expected."""
        children = self.__dict__
        expand, contract = of_vectors(children["expand"]), of_vectors(children["contract"])
        activation = kernel_of_activation(children["activation"])
        if expand is None or contract is None or activation is None:
            return None
        return (*expand, *contract), activation


def kernel_of_activation(layer: Any) -> str | None:
    """Return the name under which kernels have a stock activation; None for any other layer."""
    if stock(layer, GELU):
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(layer.approximate)
    if stock(layer, ReLU):
        return "relu"
    return "tanh" if stock(layer, Tanh) else None


class FirstFeedForward(FastFeedForward):
    """The first layer of a model."""

    __slots__ = ()
    of_input = False
    expand = FirstChild()


class FastMeanPooling(Fast, MeanPooling):
    """`MeanPooling` of whole sequences without the Python that NumPy's mean brings."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        plain = context.padding is not None or x.ndim != 3 or x.shape[1] == 0
        if plain or self._twins.kernel("linear", x) is None:
            return super().forward(x, context)
        length = x.shape[1]
        y = x.sum(axis=1)
        y /= length
        return y, (1.0 / length, None, length)


class FastPooler(Fast, Pooler):
    """`Pooler` with fast layers in it."""

    __slots__ = ()
    first = Child()
    dense = Child()
    activation = Child()


class FastSequential(Fast, Sequential):
    """`Sequential` with fast layers in it."""

    __slots__ = ()
    chain = Children()


class FirstSequential(FastSequential):
    """The first layer of a model."""

    __slots__ = ()
    chain = FirstOfChildren()


class FastTimeDistributed(Fast, TimeDistributed):
    """`TimeDistributed` with a fast layer in it."""

    __slots__ = ()
    layer = Child()


class FirstTimeDistributed(FastTimeDistributed):
    """The first layer of a model."""

    __slots__ = ()
    layer = FirstChild()


FAST_LAYERS: list[tuple[type[Layer], type, type | None]] = [
    (Linear, FastLinear, FirstLinear),
    (Conv1d, FastConv1d, FirstConv1d),
    (Dropout, FastDropout, None),
    (Embedding, FastEmbedding, None),
    (Positions, FastPositions, None),
    (TokenTypes, FastTokenTypes, None),
    (LayerNorm, FastLayerNorm, None),
    (PositionwiseFeedForward, FastFeedForward, FirstFeedForward),
    (MeanPooling, FastMeanPooling, None),
    (Pooler, FastPooler, None),
    (Sequential, FastSequential, FirstSequential),
    (TimeDistributed, FastTimeDistributed, FirstTimeDistributed),
]
for row in FAST_LAYERS:
    TABLE.add(*row)
