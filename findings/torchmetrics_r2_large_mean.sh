#!/usr/bin/env bash
# torchmetrics 1.9.0 (torch 2.13.0): R2Score of numbers near 10,000 is 0.98 where 0.22 is right.
#
# Expected: scikit-learn's number for the same float32 values (0.2235), perhaps with fewer digits.
#
# Seen: 0.98 for one batch, 0.99 for ten or a hundred; other numbers of this size give 1.5 or 0.
# The variance of the targets is a difference of two sums of squares in float32. Prices or readings
# far from 0 are enough; the same numbers less 10,000 give 0.2235.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet torchmetrics==1.9.0 torch==2.13.0 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import sklearn.metrics
import torch
import torchmetrics

index = torch.arange(1000)
targets = 10_000 + (index * 37 % 101) / 64
predictions = targets + (index * 53 % 89 - 44) / 64
by_sklearn = sklearn.metrics.r2_score(targets, predictions)


def score(size):
    """Return the score of the numbers in batches of a size."""
    metric = torchmetrics.R2Score()
    for predicted, target in zip(predictions.split(size), targets.split(size)):
        metric.update(predicted, target)
    return metric.compute().item()


scores = {size: score(size) for size in (1000, 100, 10)}
centered = torchmetrics.R2Score()(predictions - 10_000, targets - 10_000).item()
print("scikit-learn", by_sklearn, "after subtracting 10,000", centered)
print("by batch size", scores)
assert abs(by_sklearn - 0.2235) < 1e-4 and abs(centered - 0.2235) < 1e-4
assert all(number > 0.9 for number in scores.values())
PYTHON
