#!/usr/bin/env bash
# scipy 1.17.1: the paired t-test of uint8 samples gives p = 1e-5 where 1 is right.
#
# Expected: the test of the numbers, whatever integers they are stored as: ttest_ind, wilcoxon and
# pearsonr give the same result for uint8 and float64.
#
# Seen: ttest_rel subtracts the samples in uint8, where 3 - 5 is 254: brightness before and after,
# or scores from 1 to 5 as small integers, differ with t = 5.4, though half of the differences are
# 1 and half -1. tmean sums in uint8 as well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scipy==1.17.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
from scipy import stats

before = np.array([3, 4] * 15, "uint8")
after = np.array([4, 3] * 15, "uint8")
for name in ("ttest_rel", "ttest_ind", "wilcoxon"):
    test = getattr(stats, name)
    small = test(before, after)
    floats = test(before.astype(float), after.astype(float))
    print(name, "uint8: p =", small.pvalue, "float64: p =", floats.pvalue)
    if name == "ttest_rel":
        assert small.statistic > 5 and small.pvalue < 2e-5
        assert floats.statistic == 0 and floats.pvalue == 1
    else:
        assert np.isclose(small.pvalue, floats.pvalue)
bright = np.full(12, 200, "uint8")
print("tmean of twelve times 200:", stats.tmean(bright))
assert stats.tmean(bright) == 8
PYTHON
