#!/usr/bin/env bash
# scipy 1.17.1: the Euclidean distance of two uint8 vectors depends on their order: 1 one way, 255
# the other.
#
# Expected: the distance of the numbers, as cdist, pdist and sqeuclidean give it for the same
# arrays, or at least a distance that is symmetric.
#
# Seen: euclidean, cityblock, chebyshev and minkowski subtract in uint8, where 0 - 1 is 255, and
# cosine multiplies in it: two grey images that differ by one level are 255 apart, and vectors at
# an angle have distance 0. Only the functions for a single pair do so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scipy==1.17.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
from scipy.spatial import distance

dark = np.array([0, 10], "uint8")
light = np.array([1, 10], "uint8")
results = {}
for name in ("euclidean", "cityblock", "chebyshev", "sqeuclidean"):
    pair = getattr(distance, name)
    by_cdist = distance.cdist(dark[None], light[None], name).item()
    results[name] = (float(pair(light, dark)), float(pair(dark, light)), by_cdist)
    print(name, "light to dark, dark to light, cdist:", results[name])
row, column = np.array([200, 200], "uint8"), np.array([200, 100], "uint8")
with np.errstate(all="ignore"):
    by_cosine = float(distance.cosine(row, column))
right = float(distance.cosine(row.astype(float), column.astype(float)))
print("cosine", by_cosine, "of the same numbers as floats", right)
for name in ("euclidean", "cityblock", "chebyshev"):
    assert results[name] == (1.0, 255.0, 1.0)
assert results["sqeuclidean"] == (1.0, 1.0, 1.0)
assert by_cosine == 0 and abs(right - 0.0513) < 1e-4
PYTHON
