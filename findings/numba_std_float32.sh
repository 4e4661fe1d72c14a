#!/usr/bin/env bash
# numba 0.68.1: np.std of 100,000 float32 numbers near 10,000 is seven times too large.
#
# Expected: NumPy's number (0.997), or a better one: the compiled function returns float64, where
# NumPy returns float32.
#
# Seen: 7.4, because the mean is a float32 sum, one number after the other: 9992.6 for 10,000.
# np.var is 55 for 1. The float64 that comes back holds the error of a float32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numba==0.68.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numba
import numpy as np

numbers = (np.random.RandomState(0).standard_normal(100_000) + 10_000).astype("float32")
mean = numba.njit(lambda x: np.mean(x))(numbers)
deviation = numba.njit(lambda x: np.std(x))(numbers)
print("numba: mean", mean, "deviation", deviation, type(deviation).__name__)
print("NumPy: mean", numbers.mean(), "deviation", numbers.std(), numbers.std().dtype)
assert abs(numbers.std() - 1) < 0.01 and abs(numbers.mean() - 10_000) < 0.1
assert isinstance(deviation, float)
assert deviation > 5 and mean < 9_995
PYTHON
