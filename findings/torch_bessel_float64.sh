#!/usr/bin/env bash
# torch 2.13.0: Bessel and Airy functions of float64 tensors have single precision in a middle
# range.
#
# Expected: about 15 digits, as scipy 1.17.1 gives and as these functions have for small and
# large arguments.
#
# Seen: errors up to 5e-7 just above 5 for bessel_j0, and of 3e-6 just below -2 for airy_ai, though
# input and output are float64. Where the function is small, at 5.5, that is the fifth digit. The
# digits come back slowly on both sides of 5: 1e-9 at 4, 1e-15 at 30.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet torch==2.13.0 scipy==1.17.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import scipy.special
import torch

CASES = {
    "j0": (torch.special.bessel_j0, scipy.special.j0, [1.0, 4.9, 5.1, 5.5, 7.0, 200.0]),
    "j1": (torch.special.bessel_j1, scipy.special.j1, [1.0, 4.9, 5.1, 5.5, 7.0, 200.0]),
    "y0": (torch.special.bessel_y0, scipy.special.y0, [1.0, 4.9, 5.1, 5.5, 7.0, 200.0]),
    "airy": (torch.special.airy_ai, lambda x: scipy.special.airy(x)[0], [1.0, -2.0, -2.3, -4.0]),
}
errors = {}
for name, (by_torch, by_scipy, points) in CASES.items():
    x = np.array(points)
    reference = by_scipy(x)
    relative = np.abs(by_torch(torch.from_numpy(x)).numpy() / reference - 1)
    errors[name] = dict(zip(points, relative.tolist()))
    print(name, {point: f"{error:.1e}" for point, error in errors[name].items()})
accurate = {"j0": (1.0, 200.0), "j1": (1.0, 200.0), "y0": (1.0, 200.0), "airy": (1.0, -2.0)}
for name, points in accurate.items():
    assert all(errors[name][point] < 1e-14 for point in points)
assert 1e-5 < errors["j0"][5.5] < 1e-4 and 1e-6 < errors["j1"][7.0] < 1e-5
assert 1e-7 < errors["y0"][5.1] < 1e-6 and 1e-5 < errors["airy"][-2.3] < 1e-4
PYTHON
