#!/usr/bin/env bash
# tinygrad 0.14.0: the derivative of ELU at 0 is 0.
#
# Expected: 1: with alpha = 1, ELU is differentiable at 0, and its slope is 1 from both sides.
#
# Seen: 0, since elu(x) is composed as relu(x) - relu(1 - exp(x)), and relu's derivative at 0 is 0
# in both halves. Units that are exactly 0 (after an initialization of zeros) get no gradient.
# CELU and SELU are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet tinygrad==0.14.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import os

os.environ["DEV"] = "PYTHON"  # needs no compiler
from tinygrad import Tensor


def slope(function, value):
    x = Tensor([value])
    return function(x).sum().gradient(x)[0].tolist()[0]


slopes = {value: slope(lambda x: x.elu(), value) for value in (-1e-4, 0.0, 1e-4)}
print("ELU:", slopes)
celu, selu = (slope(function, 0.0) for function in (lambda x: x.celu(), lambda x: x.selu()))
print("CELU at 0:", celu, "SELU at 0:", selu)
assert abs(slopes[-1e-4] - 1) < 1e-3 and abs(slopes[1e-4] - 1) < 1e-3
assert slopes[0.0] == 0.0
assert celu == 1.0 and selu > 1.0
PYTHON
