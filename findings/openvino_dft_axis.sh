#!/usr/bin/env bash
# OpenVINO 2026.4.1: an ONNX DFT of opset 20 runs along axis 1, whatever its axis is.
#
# Expected: since opset 20 the axis of DFT is an input, -2 if it is left out; the reference
# evaluator of onnx 1.23.2 and onnxruntime 1.32.0 transform along it. In opset 17 it was an
# attribute, 1 if it was left out.
#
# Seen: the model is converted without a warning, and the transform runs along axis 1, also for an
# axis that is a constant of the graph, or left out. The attribute of opset 17 is heeded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet openvino==2026.4.1 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

SHAPE = [2, 3, 4, 2]  # the last axis holds real and imaginary parts


def model_of(axis, opset):
    """Return a DFT along an axis, or along the default one if it is None."""
    constants = [] if axis is None else [numpy_helper.from_array(np.array(axis), "axis")]
    if opset == 17:
        node = helper.make_node("DFT", ["x"], ["y"], axis=axis)
        constants = []
    elif axis is None:
        node = helper.make_node("DFT", ["x"], ["y"])
    else:
        node = helper.make_node("DFT", ["x", "", "axis"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)
    graph = helper.make_graph([node], "dft", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def axis_taken(y, x):
    """Return the axis along which a transform ran."""
    numbers = x[..., 0] + 1j * x[..., 1]
    for axis in range(3):
        expected = np.fft.fft(numbers, axis=axis)
        if np.allclose(y, np.stack([expected.real, expected.imag], -1), atol=1e-4):
            return axis
    return None


x = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
axes_taken = {}
for opset, axis in [(20, 0), (20, 1), (20, 2), (20, None), (17, 0), (17, 1), (17, 2)]:
    model = model_of(axis, opset)
    expected = 2 if axis is None else axis
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert axis_taken(session.run(None, {"x": x})[0], x) == expected
    assert axis_taken(ReferenceEvaluator(model).run(None, {"x": x})[0], x) == expected
    core = openvino.Core()
    converted = core.read_model(model.SerializeToString())
    y = core.compile_model(converted, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": x})[0]
    axes_taken[opset, axis] = axis_taken(y, x)
    print(f"opset {opset}, axis {axis}: openvino transforms along", axes_taken[opset, axis])
assert [axes_taken[20, axis] for axis in (0, 1, 2, None)] == [1, 1, 1, 1]
assert [axes_taken[17, axis] for axis in (0, 1, 2)] == [0, 1, 2]
PYTHON
