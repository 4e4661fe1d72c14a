#!/usr/bin/env bash
# pyarrow 26.0.1: one id beyond 64 bits changes the other ids of its column.
#
# Expected: an error, text, or exact integers (pandas 3.1 and polars 2.1 keep them): an id is not
# a measurement.
#
# Seen: the column becomes float64 without a word, and 9007199254740993 is read as
# 9007199254740992: two ids become one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet pyarrow==26.0.1
cd "$folder"
env/bin/python - <<'PYTHON'
import io

from pyarrow import csv

text = b"id\n9007199254740993\n9007199254740992\n18446744073709551617\n"
column = csv.read_csv(io.BytesIO(text))["id"]
small = csv.read_csv(io.BytesIO(text.rsplit(b"\n", 2)[0]))["id"]
print("with the large id:", column.type, column.to_pylist())
print("without it:", small.type, small.to_pylist())
assert str(small.type) == "int64" and len(set(small.to_pylist())) == 2
assert str(column.type) == "double" and len(set(column.to_pylist())) == 2
PYTHON
