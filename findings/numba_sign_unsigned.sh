#!/usr/bin/env bash
# numba 0.68.1: np.sign of a uint8 above 127 is 255.
#
# Expected: 1, as in NumPy: an unsigned number is 0 or positive.
#
# Seen: the upper half of every unsigned type is taken for negative, and -1 is stored as 255 (as
# 18446744073709551615 for uint64). Only compiled code does so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numba==0.68.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numba
import numpy as np

compiled = numba.njit(lambda x: np.sign(x))
for dtype in ("uint8", "uint16", "uint32", "uint64"):
    largest = np.iinfo(dtype).max
    numbers = np.array([0, 1, largest // 2, largest // 2 + 1], dtype)
    signs = compiled(numbers).tolist()
    print(dtype, numbers.tolist(), "numba", signs, "NumPy", np.sign(numbers).tolist())
    assert np.sign(numbers).tolist() == [0, 1, 1, 1]
    assert signs == [0, 1, 1, largest]
PYTHON
