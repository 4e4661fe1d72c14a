"""Fast linear maps: a single one, and the two of a feed-forward network as one kernel."""

from typing import Any

from npformer.core import Array, Context, Gradients, Parameter
from npformer.engine.context import as_engine_context
from npformer.engine.twin_classes import (
    TABLE,
    Child,
    Fast,
    FirstChild,
    Saved,
    has_own_pass,
    is_exactly,
)
from npformer.layers import (
    GELU,
    Conv1d,
    Linear,
    PositionwiseFeedForward,
    ReLU,
    SiLU,
    Tanh,
    TiedOutput,
)


def weights_and_biases(*maps: Any, convolutions: bool = False) -> list[Parameter] | None:
    """Return the parameters of plain linear maps in order; None if one is not plain, or lacks b.

    With `convolutions`, convolutions of kernel size 1 are linear maps, too.
    """
    found: list[Parameter] = []
    for layer in maps:
        linear = is_exactly(layer, Linear) or (
            convolutions and is_exactly(layer, Conv1d) and layer.weight.shape[0] == 1
        )
        if not linear or layer.bias is None:
            return None
        found += [layer.weight, layer.bias]
    return found


class ByLinearKernel(Fast):
    """Passes by the kernel for `Linear`, which serves a convolution of kernel size 1 too."""

    __slots__ = ()
    of_input = True
    weight: Parameter
    bias: Parameter | None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W, b = self.weight.value, self.bias
        if W.ndim == 3:
            W = W[0] if len(W) == 1 and x.ndim == 3 else None
        kernel = None if W is None else self._twins.kernel("linear", x)
        if kernel is None:
            return super().forward(x, context)  # type: ignore[misc, no-any-return]
        b = None if b is None else b.value
        y, cache = kernel[0](x, W, b, context=as_engine_context(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)  # type: ignore[misc]
        dx: Array
        dx, dW, *db = cache.backward(dy, cache.cache, of_input=self.of_input)
        weight = self.weight
        gradients.add(weight, dW if len(weight.shape) == 2 else dW[None])
        if self.bias is not None:
            gradients.add(self.bias, *db)
        return dx


class FastLinear(ByLinearKernel, Linear):
    """`Linear` by a kernel."""

    __slots__ = ()


class FastConv1d(ByLinearKernel, Conv1d):
    """`Conv1d` by a kernel if its kernel size is 1: one product, and no copy of x."""

    __slots__ = ()


class FastTiedOutput(Fast, TiedOutput):
    """`TiedOutput` by the kernel for `Linear`, with the table transposed."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("linear", x)
        if kernel is None:
            return super().forward(x, context)
        b = None if self.bias is None else self.bias.value
        y, cache = kernel[0](x, self.weight.value.T, b, context=as_engine_context(context))
        return y, Saved(kernel[1], cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array
        dx, dW, *db = cache.backward(dy, cache.cache)
        gradients.add(self.weight, dW.T)
        if self.bias is not None:
            gradients.add(self.bias, *db)
        return dx


class FastFeedForward(Fast, PositionwiseFeedForward):
    """`PositionwiseFeedForward` as one kernel, if the kernel knows all three of its layers."""

    __slots__ = ()
    of_input = True
    expand = Child()
    activation = Child()
    contract = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        dropped = context.training and self.dropout > 0.0  # runs as written
        kernel = None if dropped else self._twins.kernel("feed_forward", x)
        found = None if kernel is None else self._fuse()
        if kernel is None or found is None:
            return super().forward(x, context)
        parameters, activation = found
        W1, b1, W2, b2 = (parameter.value for parameter in parameters)
        if W1.ndim + W2.ndim > 4:  # one is a convolution's, with an axis for the kernel size
            if x.ndim != 3 or 0 in x.shape:
                return super().forward(x, context)  # which raises the convolution's error
            W1, W2 = W1.reshape(W1.shape[-2:]), W2.reshape(W2.shape[-2:])
        y, cache = kernel[0](x, W1, b1, W2, b2, activation, as_engine_context(context))
        return y, Saved(kernel[1], (cache, parameters))

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
        return () if self._fuse() is None else (self.__dict__["activation"],)

    def _fuse(self) -> tuple[list[Parameter], str] | None:
        """Return the parameters and the activation's name; None if the kernel lacks a layer."""
        own = self.__dict__
        parameters = weights_and_biases(own["expand"], own["contract"], convolutions=True)
        activation = kernel_of_activation(own["activation"])
        return None if parameters is None or activation is None else (parameters, activation)


NAMES: dict[type, str] = {ReLU: "relu", SiLU: "silu", Tanh: "tanh"}
"""Kernels' names for activations without settings."""


def kernel_of_activation(layer: Any) -> str | None:
    """Return the name of a plain activation for kernels; None for any other layer."""
    if is_exactly(layer, GELU):
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(layer.approximate)
    return None if has_own_pass(layer) else NAMES.get(type(layer))


TABLE.add(TiedOutput, FastTiedOutput)
TABLE.add(Linear, FastLinear, of_input=False)
TABLE.add(Conv1d, FastConv1d, of_input=False)
TABLE.add(PositionwiseFeedForward, FastFeedForward, of_input=False, expand=FirstChild())
