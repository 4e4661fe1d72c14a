#!/usr/bin/env bash
# onnx 1.23.2: with a softcap, the reference evaluator's Attention gives no raw scores.
#
# Expected: qk_matmul_output_mode = 0 returns query times key as it is: 16, as onnxruntime 1.32.0
# does.
#
# Seen: the capped scores (2 tanh(16 / 2) = 2), which are what mode 2 asks for. Nobody sees it
# without a softcap.
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


query = np.array([[[[4, 0]]]], "float32")
key = np.array([[[[4, 0], [0, 4]]]], "float32")
inputs = [query, key, key, None, None, None]
scores = {}
for mode in (0, 2):
    settings = {"qk_matmul_output_mode": mode, "softcap": 2.0, "scale": 1.0}
    by_runtime, by_reference = run("Attention", inputs, 4, **settings)
    scores[mode] = by_runtime[3].ravel().tolist(), by_reference[3].ravel().tolist()
    print("mode", mode, "onnxruntime", scores[mode][0], "reference", scores[mode][1])
assert scores[0][0] == [16, 0]
assert abs(scores[0][1][0] - 2) < 1e-5
PYTHON
