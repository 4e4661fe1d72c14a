#!/usr/bin/env bash
# pandas 3.1.1: rolling and expanding windows and exponential means leave out infinite numbers.
#
# Expected: the largest number of a window that holds infinity is infinity, as in polars 2.1.0 and
# in cummax, and a mean or a sum of it too. The documentation of `rolling` speaks of missing values
# only.
#
# Seen: infinity is replaced by NaN first. The window is NaN, or with `min_periods=1` its largest
# number is the largest finite one; a diverged loss looks smooth. ewm().mean() repeats its last
# number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet pandas==3.1.1 polars==2.1.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import pandas
import polars

losses = [1.0, 2.0, np.inf, 3.0]
series = pandas.Series(losses)
results = {
    "rolling(2).max()": series.rolling(2).max(),
    "rolling(2, min_periods=1).max()": series.rolling(2, min_periods=1).max(),
    "expanding().max()": series.expanding().max(),
    "expanding().sum()": series.expanding().sum(),
    "ewm(alpha=0.5).mean()": series.ewm(alpha=0.5).mean(),
    "cummax()": series.cummax(),
}
for call, result in results.items():
    print(call, result.tolist())
by_polars = polars.Series(losses).rolling_max(2).to_list()
print("polars, rolling_max(2)", by_polars)
assert by_polars == [None, 2, np.inf, np.inf]
assert results["cummax()"].tolist() == [1, 2, np.inf, np.inf]
assert results["rolling(2).max()"].isna().tolist() == [True, False, True, True]
assert results["rolling(2, min_periods=1).max()"].tolist() == [1, 2, 2, 3]
assert results["expanding().max()"].tolist() == [1, 2, 2, 3]
assert results["expanding().sum()"].tolist() == [1, 3, 3, 6]
assert results["ewm(alpha=0.5).mean()"][2] == results["ewm(alpha=0.5).mean()"][1]
PYTHON
