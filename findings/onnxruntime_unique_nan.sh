#!/usr/bin/env bash
# onnxruntime 1.32.0: one NaN makes Unique lose numbers; where it stands decides which.
#
# Expected: the different numbers, with one or several NaN beside them, as NumPy and the reference
# evaluator of onnx 1.23.2 give.
#
# Seen: with NaN first the result is NaN alone, and its count is the length of the input. After
# other numbers NaN is not in the result, and counts for one of them. Counts still sum up to the
# length, so that nothing looks wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

node = helper.make_node("Unique", ["x"], ["numbers", "", "", "counts"])
graph = helper.make_graph(
    [node],
    "unique",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])],
    [
        helper.make_tensor_value_info("numbers", TensorProto.FLOAT, [None]),
        helper.make_tensor_value_info("counts", TensorProto.INT64, [None]),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)


def unique(numbers):
    """Return the numbers and counts of onnxruntime, and the reference evaluator's numbers."""
    feeds = {"x": np.array(numbers, "float32")}
    by_runtime, counts = session.run(None, feeds)
    by_reference = ReferenceEvaluator(model).run(None, feeds)[0]
    return by_runtime.tolist(), counts.tolist(), by_reference.tolist()


for numbers in ([np.nan, 1, 2, 2], [1, np.nan, 2, 2], [1, 2, 2, np.nan], [1, 2, 2, 3]):
    by_runtime, counts, by_reference = unique(numbers)
    print(numbers, "gives", by_runtime, "counts", counts, "reference", by_reference)
only_nan, count, by_reference = unique([np.nan, 1, 2, 2])
assert len(only_nan) == 1 and np.isnan(only_nan[0]) and count == [4]
assert by_reference[:2] == [1, 2] and np.isnan(by_reference[2])
assert unique([1, np.nan, 2, 2])[:2] == ([1, 2], [2, 2])
assert unique([1, 2, 2, np.nan])[:2] == ([1, 2], [2, 2])
assert unique([1, 2, 2, 3])[:2] == ([1, 2, 3], [1, 2, 1])
PYTHON
