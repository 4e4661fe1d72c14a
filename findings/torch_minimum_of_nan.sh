#!/usr/bin/env bash
# torch 2.13.0: where minimum or maximum meets a NaN, both arguments get the whole gradient.
#
# Expected: a gradient that is shared out once: for two equal arguments torch gives each a half.
#
# Seen: 1 and 1, so the gradient counts twice; the argument that is a number gets one as if it had
# been chosen.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import torch


def gradients(function, first, second):
    a = torch.tensor([first], requires_grad=True)
    b = torch.tensor([second], requires_grad=True)
    function(a, b).sum().backward()
    return a.grad.item(), b.grad.item()


for function in (torch.minimum, torch.maximum):
    equal = gradients(function, 1.0, 1.0)
    nan = gradients(function, float("nan"), 1.0)
    print(function.__name__, "of equal numbers:", equal, "of NaN and 1:", nan)
    assert equal == (0.5, 0.5)
    assert nan == (1.0, 1.0)
PYTHON
