#!/usr/bin/env bash
# onnxruntime 1.32.0, CPU: Sigmoid of float32 is exactly 0 below -18, and twice too large at -17.
#
# Expected: 1.52e-08 at -18 and 2.06e-09 at -20, which float32 holds down to -103; the reference
# evaluator gives them.
#
# Seen: 0 from -18 on, and 8.94e-08 in place of 4.14e-08 at -17. log(sigmoid(x)) is minus infinity
# from there on. Sigmoid of float64 is right to 1e-16, not to 16 digits: 0 at -60, where 8.8e-27
# is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def model(operator, inputs, outputs=1, **attributes):
    """Return a model of one node; an input is an array, or None for one that is left out."""
    names = ["" if array is None else f"i{k}" for k, array in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    arguments = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(names, inputs)
        if a is not None
    ]
    values = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "graph", arguments, values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def run(operator, inputs, outputs=1, **attributes):
    """Return the outputs of onnxruntime and of the reference evaluator."""
    built = model(operator, inputs, outputs, **attributes)
    feeds = {f"i{k}": array for k, array in enumerate(inputs) if array is not None}
    session = onnxruntime.InferenceSession(
        built.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds), ReferenceEvaluator(built).run(None, feeds)


x = np.array([-16, -17, -18, -20, -60], "float32")
(by_runtime,), (by_reference,) = run("Sigmoid", [x])
right = 1 / (1 + np.exp(-x.astype("float64")))
print("x          ", x)
print("onnxruntime", by_runtime)
print("reference  ", by_reference)
print("float64    ", right)
assert np.allclose(by_reference, right, rtol=1e-5, atol=0)
assert (by_runtime[2:] == 0).all()
assert by_runtime[1] > 2 * right[1]
(doubles,), _ = run("Sigmoid", [x.astype("float64")])
print("onnxruntime, float64", doubles)
assert np.allclose(doubles, right, rtol=0, atol=1e-15) and doubles[-1] == 0
PYTHON
