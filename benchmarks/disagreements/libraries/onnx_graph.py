"""Graphs of one node, for the scripts of ONNX runtimes."""

import numpy as np
from onnx import TensorProto, helper

TYPES = {
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}


def model_of(operator, inputs, n_outputs, opset, domain="", **attributes):
    """Return a model of one node; `inputs` are NumPy arrays, None for one left out.

    The outputs have the type of the first input, but for TopK's places.
    """
    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    outputs = [f"y{k}" for k in range(n_outputs)]
    node = helper.make_node(operator, names, outputs, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, TYPES[str(x.dtype)], list(x.shape))
        for name, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    first = next(x for x in inputs if x is not None)
    types = [TYPES[str(first.dtype)]] * n_outputs
    if operator in ("TopK", "ArgMax"):
        types[-1] = TensorProto.INT64
    results = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(outputs, types, strict=True)
    ]
    graph = helper.make_graph([node], "one_node", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)])
    model.ir_version = 10
    return model


def feeds_of(inputs):
    """Return the inputs by name."""
    return {f"x{k}": x for k, x in enumerate(inputs) if x is not None}


def int64(*values):
    """Return an array of whole numbers."""
    return np.array(values, dtype="int64")


def to_single(inputs):
    """Return inputs with float64 arrays as float32."""
    return [x if x is None or x.dtype != "float64" else x.astype("float32") for x in inputs]
