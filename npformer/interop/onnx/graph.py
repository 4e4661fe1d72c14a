"""Graph: nodes of ONNX, written as formulas of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import Layer, Parameter, to_numpy
from npformer.interop.onnx.converters import converter_of

OPSET, IR = 20, 9
"""Version 20 of the operators has GELU; runtimes since 2023 support it."""


def _operator(name: str) -> Callable[[Value, Any], Value]:
    """Return a method that adds a node with this operator."""

    def add_node(self: Value, other: Any) -> Value:
        return self.graph.node(name, self, other)

    return add_node


class Value:
    """An array that the graph will compute. Each of ``+ - * / @`` adds a node."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __matmul__ = _operator("MatMul")
    __and__ = _operator("And")

    def expand_dims(self, *axes: int) -> Value:
        """Return the array with new axes of length 1 at these positions."""
        return self.graph.node("Unsqueeze", self, list(axes))

    def reshape(self, *shape: int) -> Value:
        """Return the array in another shape; 0 leaves an axis unchanged, -1 is inferred."""
        return self.graph.node("Reshape", self, list(shape))

    def transpose(self, *axes: int) -> Value:
        """Return the array with its axes in this order."""
        return self.graph.node("Transpose", self, perm=list(axes))

    def cut(self, begin: Any, end: Any, axis: int) -> Value:
        """Return the slice from `begin` up to `end`, each a number or a `Value`."""
        starts = begin if isinstance(begin, Value) else [begin]
        ends = end if isinstance(end, Value) else [end]
        return self.graph.node("Slice", self, starts, ends, [axis])

    def sum(self, *axes: int, keep: bool = False) -> Value:
        """Return the sum over these axes."""
        return self.graph.node("ReduceSum", self, list(axes), keepdims=int(keep))

    def cast_like(self, other: Value) -> Value:
        """Return the array in the dtype of another one.

        This way integers become floats whose type is right even after a tool has converted the
        file to float16.
        """
        return self.graph.node("CastLike", self, other)

    def cast(self, dtype: str) -> Value:
        """Return the array in another dtype: "int64" or "bool"; for floats see `cast_like`."""
        from onnx.helper import np_dtype_to_tensor_dtype

        return self.graph.node("Cast", self, to=np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Graph:
    """The nodes that compute a model, and the inputs that its layers share.

    Converters get it as layers get a `Context`.

    Attributes
    ----------
    mask : Value or None
        (batch, length), True at tokens that are not padding; None: no padding.
    types : Value or None
        The types of the tokens; None: all are 0.
    length : Value
        The length of the sequences, an array of one number, known only when the model runs.
    max_len, d_model : int
        The largest length; the features of a token.
    """

    def __init__(self, names: Mapping[Parameter, str], max_len: int, d_model: int) -> None:
        self.mask: Value | None = None
        self.types: Value | None = None
        self.max_len = max_len
        self.d_model = d_model
        self.nodes: list[Any] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._names = names
        self.length: Value

    def input(self, name: str, dtype: str, shape: Iterable[Any]) -> Value:
        """Add an input, which the caller will pass, and return it."""
        self.inputs.append(_value_info(name, dtype, shape))
        return Value(self, name)

    def output(self, name: str, value: Value, shape: Iterable[Any]) -> None:
        """Make an array an output, under this name."""
        from onnx.helper import make_node

        self.nodes.append(make_node("Identity", [value.name], [name]))
        self.outputs.append(_value_info(name, "float32", shape))

    def apply(self, layer: Layer, x: Value) -> Value:
        """Return the output of a layer for x, by the converter of its class."""
        y: Value = converter_of(layer)(layer, x, self)
        return y

    def chain(self, layers: Iterable[Layer], x: Value) -> Value:
        """Return the output of a sequence of layers for x."""
        for layer in layers:
            x = self.apply(layer, x)
        return x

    def node(self, operator: str, *inputs: Any, **attributes: Any) -> Value:
        """Add a node with an operator of ONNX, and return its output.

        Inputs may be values, parameters, arrays and numbers. In the graph, floats are float32 and
        integers int64.
        """
        from onnx.helper import make_node

        value = Value(self, f"{operator}_{len(self.nodes)}")
        names = [self.value(array).name for array in inputs]
        self.nodes.append(make_node(operator, names, [value.name], value.name, **attributes))
        return value

    def value(self, array: Any) -> Value:
        """Return an array, a number or a parameter as a value of the graph."""
        if isinstance(array, Value):
            return array
        if isinstance(array, Parameter):
            name = self._names[array]
            if name not in self.arrays:  # a shared parameter is stored once
                self.arrays[name] = to_numpy(array.value).astype("float32")
            return Value(self, name)
        constant = np.asarray(array)
        if constant.dtype.kind in "fiu":
            dtype = "float32" if constant.dtype.kind == "f" else "int64"
            constant = constant.astype(dtype)
        name = f"constant_{len(self.arrays)}"
        self.arrays[name] = constant
        return Value(self, name)

    def crop(self, array: Any, *axes: int) -> Value:
        """Return an array or a parameter, cropped to the length along these axes."""
        return self.cut_to_length(self.value(array), axes, len(array.shape))

    def cut_to_length(self, value: Value, axes: Sequence[int], n_axes: int) -> Value:
        """Return a value with `n_axes` axes, of which these are cut to the length.

        The Reshape after the Slice changes no number: it tells tools that infer shapes that the
        axis has the length, not the smaller one of two lengths.
        """
        for axis in axes:
            value = value.cut(0, self.length, axis)
        sizes: list[Any] = [[0]] * n_axes  # 0: unchanged
        for axis in axes:
            sizes[axis] = self.length
        return self.node("Reshape", value, self.node("Concat", *sizes, axis=0))

    def where(self, condition: Value, yes: Any, no: Any) -> Value:
        """Return `yes` where the condition is True, and `no` elsewhere."""
        return self.node("Where", condition, yes, no)

    def zero_padding(self, x: Value) -> Value:
        """Return (batch, length, features) with 0 at padding."""
        if self.mask is None:
            return x
        return self.where(self.mask.expand_dims(-1), x, 0.0)

    def positions(self) -> Value:
        """Return 0, 1, ... up to the length."""
        return self.node("Range", 0, self.node("Squeeze", self.length), 1)

    def model(self, metadata: Mapping[str, str]) -> Any:
        """Return the ONNX model, after checking it, with these strings in its metadata."""
        from onnx import checker, helper, numpy_helper

        arrays = [numpy_helper.from_array(array, name) for name, array in self.arrays.items()]
        graph = helper.make_graph(self.nodes, "npformer", self.inputs, self.outputs, arrays)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, producer_name="npformer", opset_imports=opset, ir_version=IR
        )
        helper.set_model_props(model, dict(metadata))
        checker.check_model(model)
        return model


def _value_info(name: str, dtype: str, shape: Iterable[Any]) -> Any:
    """Return the description of an input or output in ONNX."""
    from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

    return make_tensor_value_info(name, np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))
