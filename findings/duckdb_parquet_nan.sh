#!/usr/bin/env bash
# duckdb 2.0.0: `where x < 5` on a Parquet file returns rows that are NaN, and on a table it
# doesn't.
#
# Expected: the same rows from a file as from the table that holds the file's rows. In duckdb NaN
# is larger than any number, so that none of these rows is below 5, and all are above.
#
# Seen: the file's statistics (1 to 3) leave NaN out, as the format asks, so the test is taken as
# true for all rows of the file, or as false: NaN passes `< 5` and fails `> 5`. A mean over the
# rows below 5 is NaN. polars 2.1.0 gives the same rows either way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet duckdb==2.0.0 pyarrow==26.0.1 polars==2.1.0
cd "$folder"
env/bin/python - <<'PYTHON'
import duckdb
import polars
import pyarrow
from pyarrow import parquet

parquet.write_table(pyarrow.table({"x": [1.0, 2.0, 3.0, float("nan")]}), "numbers.parquet")
duckdb.sql("create table numbers as select * from 'numbers.parquet'")


def rows(source, condition):
    query = f"select x from {source} where x {condition} order by x"
    return [str(row[0]) for row in duckdb.sql(query).fetchall()]


for condition in ("< 5", "> 5"):
    print("x", condition, "file", rows("'numbers.parquet'", condition))
    print("x", condition, "table", rows("numbers", condition))
assert rows("numbers", "< 5") == ["1.0", "2.0", "3.0"]
assert rows("numbers", "> 5") == ["nan"]
assert rows("'numbers.parquet'", "< 5") == ["1.0", "2.0", "3.0", "nan"]
assert rows("'numbers.parquet'", "> 5") == []
lazy = polars.scan_parquet("numbers.parquet")
assert lazy.filter(polars.col("x") < 5).collect().height == 3
assert lazy.filter(polars.col("x") > 5).collect().height == 1
PYTHON
