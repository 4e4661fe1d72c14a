#!/usr/bin/env bash
# numpy 2.4.6: nanmean of float16 overflows where mean does not, with no NaN in the array.
#
# Expected: the same number: for an array without NaN, nanmean is mean.
#
# Seen: mean sums float16 in float32, nanmean sums in float16: infinity for ten values of 60,000,
# and from 65,520 ones on.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np

large = np.full(10, 60000, "float16")
ones = np.ones(70000, "float16")
with np.errstate(over="ignore"):
    results = {
        "mean of large": np.mean(large),
        "nanmean of large": np.nanmean(large),
        "mean of ones": np.mean(ones),
        "nanmean of ones": np.nanmean(ones),
    }
print({name: float(value) for name, value in results.items()})
assert results["mean of large"] == 60000 and results["mean of ones"] == 1
assert np.isinf(results["nanmean of large"]) and np.isinf(results["nanmean of ones"])
PYTHON
