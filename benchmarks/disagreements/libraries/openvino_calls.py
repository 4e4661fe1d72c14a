# /// script
# requires-python = ">=3.11"
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy==2.4.6"]
# ///
"""Answers of OpenVINO on the CPU, for ONNX graphs."""

import onnx_operators
import onnx_reductions  # noqa: F401 - its calls
import openvino
from calls import Library, main
from onnx_graph import feeds_of, model_of

CORE = openvino.Core()
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def run(operator, inputs, n_outputs=1, opset=20, **attributes):
    model = model_of(operator, inputs, n_outputs, opset, **attributes)
    graph = CORE.read_model(model.SerializeToString())
    results = CORE.compile_model(graph, "CPU", EXACT)(feeds_of(inputs))
    return results[len(results) - 1]


def array(values, dtype):
    # It computes float64 arrays in float32.
    return values.astype(dtype.replace("64", "32")) if dtype else values


onnx_operators.RUN = run
main(Library(array))
