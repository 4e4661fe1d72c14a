#!/usr/bin/env bash
# pandas 3.1.1: where bottleneck 1.6.0 is installed, the deviation of a float32 column is seven
# times too large.
#
# Expected: bottleneck makes some reductions faster; the numbers stay. pandas doesn't use it for
# sums and means, which it would make inaccurate.
#
# Seen: std and var of 100,000 float32 numbers near 10,000 go from 0.997 and 0.995 to 7.4 and 55 by
# the mere presence of a package that nobody imports. A group that holds all rows still has 0.997.
# Without the package, or with the option compute.use_bottleneck off, all is well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet pandas==3.1.1 bottleneck==1.6.0 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import pandas

numbers = (np.random.RandomState(0).standard_normal(100_000) + 10_000).astype("float32")
series = pandas.Series(numbers)
deviations = {}
for is_used in (True, False):
    pandas.set_option("compute.use_bottleneck", is_used)
    group = series.groupby(np.zeros(len(numbers))).std().item()
    deviations[is_used] = (float(series.std()), group)
    print("bottleneck", is_used, "mean", series.mean(), "deviation", series.std(), "group", group)
assert pandas.get_option("compute.use_bottleneck") is False
pandas.reset_option("compute.use_bottleneck")
assert pandas.get_option("compute.use_bottleneck") is True
assert deviations[True][0] > 5
assert abs(deviations[True][1] - 1) < 0.01
assert abs(deviations[False][0] - 1) < 0.01 and abs(deviations[False][1] - 1) < 0.01
PYTHON
