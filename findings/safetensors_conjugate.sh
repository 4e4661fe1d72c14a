#!/usr/bin/env bash
# safetensors 0.8.0 with torch 2.13.0: a conjugated tensor is saved without the conjugation.
#
# Expected: the numbers that the tensor prints, or an error, as for other lazy views; torch.save
# keeps them.
#
# Seen: 1 - 2i comes back as 1 + 2i, and the imaginary part of a conjugate with the other sign.
# torch.conj() only sets a mark on the tensor, and the mark isn't looked at.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet safetensors==0.8.0 torch==2.13.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import io

import torch
from safetensors.torch import load, save

numbers = torch.tensor([1 + 2j, 3 - 4j])
negative = torch.tensor([1 + 2j]).conj().imag
loaded = load(save({"conjugate": numbers.conj(), "imaginary": negative}))
buffer = io.BytesIO()
torch.save(numbers.conj(), buffer)
buffer.seek(0)
by_torch = torch.load(buffer)
print("conjugate", numbers.conj().tolist(), "loaded", loaded["conjugate"].tolist())
print("imaginary part", negative.tolist(), "loaded", loaded["imaginary"].tolist())
assert torch.equal(by_torch, numbers.conj())
assert torch.equal(loaded["conjugate"], numbers)
assert negative.tolist() == [-2.0] and loaded["imaginary"].tolist() == [2.0]
PYTHON
