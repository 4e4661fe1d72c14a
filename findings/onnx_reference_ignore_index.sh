#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's NegativeLogLikelihoodLoss divides by ignored labels, too.
#
# Expected: a mean over the labels that count, as weights of ones give, as SoftmaxCrossEntropyLoss
# in the same evaluator gives, and as torch and onnxruntime do.
#
# Seen: without weights it divides by all labels: 2/3 where the right value is 1.
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


log_probabilities = -np.ones((3, 4), "float32")
labels = np.array([0, 1, -1])
ones = np.ones(4, "float32")
name = "NegativeLogLikelihoodLoss"
(by_runtime,), (by_reference,) = run(name, [log_probabilities, labels], ignore_index=-1)
_, (weighted,) = run(name, [log_probabilities, labels, ones], ignore_index=-1)
print("onnxruntime", by_runtime, "reference", by_reference, "with weights of ones", weighted)
assert by_runtime == 1 and weighted == 1
assert abs(by_reference - 2 / 3) < 1e-6
PYTHON
