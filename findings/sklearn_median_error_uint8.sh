#!/usr/bin/env bash
# scikit-learn 1.9.1: max_error and median_absolute_error of uint8 numbers are wrong,
# mean_absolute_error is right.
#
# Expected: errors of the numbers, as mean_absolute_error, mean_squared_error and r2_score give
# them for the same arrays.
#
# Seen: these two subtract in uint8: a prediction of 99 for 100 is off by 255, and one of 101 by 1.
# The largest error of grey values or of star ratings is 255 as soon as one prediction is one too
# low.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
from sklearn import metrics

true = np.array([100, 100, 100, 100, 100], "uint8")
predicted = np.array([99, 98, 100, 97, 101], "uint8")
errors = {}
for name in ("max_error", "median_absolute_error", "mean_absolute_error", "mean_squared_error"):
    metric = getattr(metrics, name)
    floats = float(metric(true.astype(float), predicted.astype(float)))
    errors[name] = (float(metric(true, predicted)), floats)
    print(name, "uint8:", errors[name][0], "float64:", floats)
assert errors["max_error"] == (255, 3)
assert errors["median_absolute_error"] == (253, 1)
for name in ("mean_absolute_error", "mean_squared_error"):
    assert np.isclose(*errors[name])
PYTHON
