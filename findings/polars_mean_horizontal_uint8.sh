#!/usr/bin/env bash
# polars 2.1.0: the mean of two columns may be smaller than both of them.
#
# Expected: a mean lies between its numbers. polars sums small integers in 64 bits, as documented
# for `sum`, and the mean of a column is right.
#
# Seen: mean_horizontal adds UInt8 columns in UInt8 before it divides: the mean of 200 and 208 is
# 76, and of Int8 100 and 120 it is -18. The type of the result is Float64, which hides it.
# sum_horizontal of the same columns wraps too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet polars==2.1.0
cd "$folder"
env/bin/python - <<'PYTHON'
import polars

frame = polars.DataFrame(
    {"left": [200, 10], "right": [208, 20]}, schema={"left": polars.UInt8, "right": polars.UInt8}
)
signed = polars.DataFrame(
    {"left": [100], "right": [120]}, schema={"left": polars.Int8, "right": polars.Int8}
)
horizontal = frame.select(polars.mean_horizontal("left", "right")).to_series()
of_signed = signed.select(polars.mean_horizontal("left", "right")).to_series()
by_rows = [row.mean() for row in frame.transpose()]
total = frame.select(polars.sum_horizontal("left", "right")).to_series()
print("mean_horizontal", horizontal.dtype, horizontal.to_list(), "of Int8", of_signed.to_list())
print("mean of each row as a column", by_rows, "sum_horizontal", total.to_list())
print("sum of a column", frame["left"].sum())
assert horizontal.dtype == polars.Float64
assert horizontal.to_list() == [76, 15] and of_signed.to_list() == [-18]
assert by_rows == [204, 15]
assert total.to_list() == [152, 30] and frame["left"].sum() == 210
PYTHON
