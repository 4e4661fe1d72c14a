#!/usr/bin/env bash
# polars 2.1.0: hour * 60 + minute is negative from 2:08 on.
#
# Expected: 1439 for 23:59, as pandas 3.1.1 and pyarrow 26.0.1 give: the hour is a number, and 60
# isn't small.
#
# Seen: dt.hour() is Int8, a literal takes its type, and the product wraps without a word: -97 for
# 23:59, and 128 minutes become -128. hour * 3600 is Int16 and gives 17264 for 23:00. A feature of
# the time of day is wrong for nine tenths of the day.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import datetime

import pandas
import polars
import pyarrow
from pyarrow import compute

times = [datetime.datetime(2026, 1, 1, hour, minute) for hour, minute in ((2, 7), (2, 8), (23, 59))]
column = polars.col("time").dt
minutes = column.hour() * 60 + column.minute()
seconds = column.hour() * 3600
frame = polars.DataFrame({"time": times}).select(minutes=minutes, seconds=seconds)
by_pandas = pandas.Series(times).dt.hour * 60 + pandas.Series(times).dt.minute
array = pyarrow.array(times)
by_arrow = compute.add(compute.multiply(compute.hour(array), 60), compute.minute(array))
print("polars", frame.schema, frame.rows())
print("pandas", by_pandas.tolist(), "pyarrow", by_arrow.to_pylist())
assert frame["minutes"].to_list() == [127, -128, -97]
assert frame["seconds"].to_list() == [7200, 7200, 17264]
assert by_pandas.tolist() == by_arrow.to_pylist() == [127, 128, 1439]
PYTHON
