# /// script
# requires-python = ">=3.11"
# dependencies = ["onnxruntime==1.32.0", "onnx==1.23.2", "numpy==2.4.6"]
# ///
"""Answers of onnxruntime, on the CPU."""

import onnx_operators
import onnx_reductions  # noqa: F401 - its calls
import onnxruntime
from calls import Library, main
from onnx_graph import feeds_of, model_of, to_single

onnxruntime.set_default_logger_severity(4)

SINGLE = ("Attention", "Conv", "Gelu", "RotaryEmbedding")
"""Operators that it has in float32 only, or computes in it."""


def run(operator, inputs, n_outputs=1, opset=20, **attributes):
    if operator in SINGLE:
        inputs = to_single(inputs)
    model = model_of(operator, inputs, n_outputs, opset, **attributes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds_of(inputs))[-1]


def array(values, dtype):
    return values.astype(dtype) if dtype else values


onnx_operators.RUN = run
main(Library(array))
