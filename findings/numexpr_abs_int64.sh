#!/usr/bin/env bash
# numexpr 2.14.2: abs() of 64-bit integers gives float64, so that ids above 2**53 change.
#
# Expected: the dtype of the argument, as in NumPy; numexpr keeps int64 in sums, products and
# where().
#
# Seen: float64. abs(9007199254740993) is 9007199254740992, and a filter that asks for one id finds
# two rows. pandas 3.1.1 computes `eval` and `query` of a frame with numexpr as soon as it is
# installed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numexpr==2.14.2 pandas==3.1.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numexpr
import numpy as np
import pandas

ids = np.array([2**53, 2**53 + 1])
magnitudes = numexpr.evaluate("abs(ids)")
by_where = numexpr.evaluate("where(ids < 0, -ids, ids)")
frame = pandas.DataFrame({"ids": ids})
print("abs", magnitudes.dtype, "where", by_where.dtype, by_where.tolist())
rows = frame.query(f"abs(ids) == {2**53 + 1}")
rows_of_python = frame.query(f"abs(ids) == {2**53 + 1}", engine="python")
print("rows with one id:", len(rows), "by engine='python':", len(rows_of_python))
assert magnitudes.dtype == "float64" and len(set(magnitudes.tolist())) == 1
assert by_where.tolist() == ids.tolist()
assert len(rows) == 2 and len(rows_of_python) == 1
PYTHON
