#!/usr/bin/env bash
# torchmetrics 1.9.0: how samples are cut into batches changes AUROC and F1 of raw scores.
#
# Expected: scores outside 0 to 1 are logits and go through the sigmoid, as documented; a metric
# that collects batches gives the number of all samples together.
#
# Seen: each batch is looked at alone. One whose logits all lie in 0 to 1 is left as it is, so
# probabilities and logits are ranked together: AUROC 0.75 in two batches, 0.6875 in one, and F1
# 0.5 and 0.6. A last, short batch is enough.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import torch
import torchmetrics

logits = torch.tensor([0.2, 0.9, 0.4, 0.6, 3.0, -2.0, 0.5, -0.1])
labels = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])


def value(name, size):
    """Return a metric of the logits in batches of a size."""
    metric = getattr(torchmetrics, name)(task="binary")
    for scores, targets in zip(logits.split(size), labels.split(size)):
        metric.update(scores, targets)
    return round(metric.compute().item(), 4)


values = {(name, size): value(name, size) for name in ("AUROC", "F1Score") for size in (8, 4)}
for (name, size), number in values.items():
    print(name, "in batches of", size, "is", number)
assert values == {
    ("AUROC", 8): 0.6875,
    ("AUROC", 4): 0.75,
    ("F1Score", 8): 0.6,
    ("F1Score", 4): 0.5,
}
PYTHON
