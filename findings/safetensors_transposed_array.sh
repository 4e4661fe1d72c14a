#!/usr/bin/env bash
# safetensors 0.8.0: a transposed NumPy array is saved with its numbers in the wrong places.
#
# Expected: the array, copied into C order, or an error: safetensors.torch refuses a tensor that is
# not contiguous, and np.save keeps the order of the array.
#
# Seen: the memory goes into the file as it lies, under the shape of the view: weights.T and
# np.asfortranarray(weights) come back as other matrices, without a word. Version 0.5.3 saved them
# correctly.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet safetensors==0.8.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
from safetensors.numpy import load, save

weights = np.arange(6, dtype="float32").reshape(2, 3)
arrays = {"transposed": weights.T, "Fortran": np.asfortranarray(weights), "C": weights}
loaded = load(save(arrays))
for name, array in arrays.items():
    print(name, "saved", array.tolist(), "loaded", loaded[name].tolist())
np.save("transposed.npy", weights.T)
assert (np.load("transposed.npy") == weights.T).all()
assert (loaded["C"] == weights).all()
assert loaded["transposed"].tolist() == [[0, 1], [2, 3], [4, 5]]
assert loaded["Fortran"].tolist() == [[0, 3, 1], [4, 2, 5]]
PYTHON
