#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's LpNormalization with p = 1 divides by the signed sum.
#
# Expected: the sum of absolute values: [3, -1] becomes [.75, -.25], as in onnxruntime.
#
# Seen: [1.5, -.5]; for [3, -3], whose sum is 0, it returns zeros.
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


for row, right in (([3, -1], [0.75, -0.25]), ([3, -3], [0.5, -0.5])):
    (by_runtime,), (by_reference,) = run("LpNormalization", [np.array([row], "float32")], p=1)
    print(row, "onnxruntime", by_runtime[0], "reference", by_reference[0])
    assert by_runtime[0].tolist() == right
    assert by_reference[0].tolist() != right
PYTHON
