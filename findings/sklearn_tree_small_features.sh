#!/usr/bin/env bash
# scikit-learn 1.9.1: trees and forests learn nothing from a feature whose values are about 1e-6.
#
# Expected: a decision tree looks at the order of values alone, so that a change of units (from
# micrometers to meters) changes nothing. HistGradientBoosting, xgboost and lightgbm do so.
#
# Seen: neighbouring values that differ by less than 1e-7 count as equal. Accuracy on the training
# rows falls from 1.0 to that of a constant, without a warning, for DecisionTree, RandomForest and
# GradientBoosting.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

micrometers = np.arange(200.0).reshape(-1, 1) / 200
labels = (micrometers[:, 0] > 0.4).astype(int)


def accuracies(model):
    """Return the accuracy on the training rows in micrometers and in meters."""
    rows = (micrometers, micrometers * 1e-6)
    return [round(float(model.fit(row, labels).score(row, labels)), 3) for row in rows]


constant = round(float(max(labels.mean(), 1 - labels.mean())), 3)
for model in (DecisionTreeClassifier, RandomForestClassifier, GradientBoostingClassifier):
    scores = accuracies(model(random_state=0))
    print(model.__name__, "micrometers, meters:", scores)
    assert scores == [1.0, constant]
scores = accuracies(HistGradientBoostingClassifier(random_state=0))
print("HistGradientBoostingClassifier micrometers, meters:", scores)
assert scores == [1.0, 1.0]
PYTHON
