"""Fast linear maps: a single map, and the maps of a feed-forward network as one kernel."""

from typing import Any

from npformer.core import Array, Context, Gradients, Parameter, value_of
from npformer.engine.twin_classes import (
    TABLE,
    ByKernel,
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
    Dropout,
    GatedFeedForward,
    Linear,
    PositionwiseFeedForward,
    ReLU,
    SiLU,
    Tanh,
    TiedOutput,
)


def weights_and_biases(
    *maps: Any, convolutions: bool = False, bare: bool = False
) -> list[Any] | None:
    """Return the parameters of plain linear maps in order.

    Return None if a map is not plain or has no bias. With `convolutions`, convolutions of kernel
    size 1 count as linear maps. With `bare`, maps may have no bias; None takes its place.
    """
    parameters: list[Any] = []
    for layer in maps:
        is_linear = is_exactly(layer, Linear) or (
            convolutions and is_exactly(layer, Conv1d) and layer.weight.shape[0] == 1
        )
        if not is_linear or (layer.bias is None and not bare):
            return None
        parameters += [layer.weight, layer.bias]
    return parameters


class FastLinear(ByKernel, Linear):
    """`Linear` by a kernel."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        result = self.run("linear", x, (self.weight, self.bias), context=context)
        return result or super().forward(x, context)


class FastConv1d(ByKernel, Conv1d):
    """`Conv1d` by the kernel for `Linear` if its kernel size is 1: one product, no copy of x."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W, b = self.weight.value, value_of(self.bias)
        result = None
        if len(W) == 1 and x.ndim == 3:
            parameters, values = (self.weight, self.bias), (W[0], b)
            result = self.run("linear", x, parameters, context=context, values=values)
        return result or super().forward(x, context)


class FastTiedOutput(Fast, TiedOutput):
    """`TiedOutput` by the kernel for `Linear`, with the table transposed."""

    __slots__ = ()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        values = self.weight.value.T, value_of(self.bias)
        result = self.run("linear", x, (), context=context, values=values)
        return result or super().forward(x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)
        dx: Array
        dx, dW, *db = cache.add_gradients(dy, gradients)
        gradients.add_each((self.weight, self.bias), (dW.T, *db))
        return dx


class FastFeedForward(ByKernel, PositionwiseFeedForward):
    """`PositionwiseFeedForward` as one kernel, if the kernel knows all three of its layers."""

    __slots__ = ()
    expand = Child()
    activation = Child()
    contract = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if context.training and self.dropout > 0.0:
            return super().forward(x, context)
        kernel_arguments = self.kernel_arguments()
        if kernel_arguments is None:
            return super().forward(x, context)
        parameters, activation = kernel_arguments
        values = [parameter.value for parameter in parameters]
        if values[0].ndim + values[2].ndim > 4:  # convolutions of kernel size 1
            if x.ndim != 3 or 0 in x.shape:
                return super().forward(x, context)  # which raises a convolution's error
            values = [W[0] if W.ndim > 2 else W for W in values]
        result = self.run("feed_forward", x, parameters, activation, context=context, values=values)
        return result or super().forward(x, context)

    def passes_over(self) -> tuple[Any, ...]:
        return () if self.kernel_arguments() is None else (self.__dict__["activation"],)

    def kernel_arguments(self) -> tuple[list[Parameter], str] | None:
        """Return the parameters and the activation's name; None if the kernel lacks a layer."""
        attributes = self.__dict__
        parameters = weights_and_biases(
            attributes["expand"], attributes["contract"], convolutions=True
        )
        activation = kernel_of_activation(attributes["activation"])
        return None if parameters is None or activation is None else (parameters, activation)


class FastGated(ByKernel, GatedFeedForward):
    """`GatedFeedForward` as one kernel, if the kernel knows all of its layers."""

    __slots__ = ()
    gate = Child()
    up = Child()
    activation = Child()
    dropout = Child()
    down = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        dropout = self.__dict__["dropout"]
        if not is_exactly(dropout, Dropout) or (context.training and dropout.rate > 0.0):
            return super().forward(x, context)
        kernel_arguments = self._kernel_arguments()
        if kernel_arguments is None:
            return super().forward(x, context)
        parameters, activation = kernel_arguments
        result = self.run("gated_feed_forward", x, parameters, activation, context=context)
        return result or super().forward(x, context)

    def passes_over(self) -> tuple[Any, ...]:
        return () if self._kernel_arguments() is None else (self.__dict__["activation"],)

    def _kernel_arguments(self) -> tuple[list[Any], str] | None:
        """Return the parameters and the activation's name; None if the kernel lacks a layer."""
        attributes = self.__dict__
        parameters = weights_and_biases(
            attributes["gate"], attributes["up"], attributes["down"], bare=True
        )
        activation = kernel_of_activation(attributes["activation"])
        return None if parameters is None or activation is None else (parameters, activation)


NAMES: dict[type, str] = {ReLU: "relu", SiLU: "silu", Tanh: "tanh"}
"""Kernels' names for activations without settings."""


def kernel_of_activation(layer: Any) -> str | None:
    """Return the name of a plain activation for kernels; None for any other layer."""
    if is_exactly(layer, GELU):
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(layer.approximate)
    return None if has_own_pass(layer) else NAMES.get(type(layer))


TABLE.add(TiedOutput, FastTiedOutput)
NO_INPUT = {"of_input": False}
TABLE.add(Linear, FastLinear, options=NO_INPUT)
TABLE.add(Conv1d, FastConv1d, options=NO_INPUT)
TABLE.add(GatedFeedForward, FastGated)
TABLE.add(PositionwiseFeedForward, FastFeedForward, options=NO_INPUT, expand=FirstChild())
