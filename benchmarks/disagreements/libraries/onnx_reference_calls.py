# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "numpy==2.4.6"]
# ///
"""Answers of ONNX' reference evaluator."""

import onnx_operators
from calls import Library, main
from onnx.reference import ReferenceEvaluator
from onnx_graph import feeds_of, model_of, to_single

SINGLE = ("Gelu",)
"""Operators that it computes in float32."""


def run(operator, inputs, n_outputs=1, opset=20, **attributes):
    if operator in SINGLE:
        inputs = to_single(inputs)
    model = model_of(operator, inputs, n_outputs, opset, **attributes)
    return ReferenceEvaluator(model).run(None, feeds_of(inputs))[-1]


def array(values, dtype):
    return values.astype(dtype) if dtype else values


onnx_operators.RUN = run
main(Library(array))
