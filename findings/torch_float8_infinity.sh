#!/usr/bin/env bash
# torch 2.13.0: infinity cast to float8_e4m3fn is 448, and to float8_e5m2 infinity.
#
# Expected: NaN, as ml_dtypes 0.6.0 and jax give: the format has no infinity, and NaN is what is
# left to say that a number is none.
#
# Seen: 448, the largest number: a diverged tensor looks healthy after the cast. The same cast to
# e5m2 keeps infinity, and overflows to it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet torch==2.13.0 ml_dtypes==0.6.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import ml_dtypes
import numpy as np
import torch

values = [float("inf"), float("-inf"), 1e9, float("nan")]
by_torch = torch.tensor(values).to(torch.float8_e4m3fn).float().tolist()
e5m2 = torch.tensor(values).to(torch.float8_e5m2).float().tolist()
with np.errstate(all="ignore"):
    by_ml_dtypes = np.array(values, "float32").astype(ml_dtypes.float8_e4m3fn).astype("float32")
print("values           ", values)
print("torch, e4m3fn    ", by_torch)
print("torch, e5m2      ", e5m2)
print("ml_dtypes, e4m3fn", by_ml_dtypes.tolist())
assert by_torch[:3] == [448.0, -448.0, 448.0]
assert e5m2[:3] == [float("inf"), float("-inf"), float("inf")]
assert np.isnan(by_ml_dtypes).all()
PYTHON
