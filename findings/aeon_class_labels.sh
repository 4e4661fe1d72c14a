#!/usr/bin/env bash
# aeon 1.6.0: class labels of a .ts file are read in lower case, so A and a become one class.
#
# Expected: the labels of the file; @classLabel declares A and a as two classes, and predictions
# are written with these names.
#
# Seen: 'a' and 'a', and 'yes' for Yes. A space before the label stays in it (' 1' is another
# class than '1'), although spaces around values do not matter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet aeon==1.6.0
cd "$folder"
env/bin/python - <<'PYTHON'
from pathlib import Path

from aeon.datasets import load_from_ts_file

HEADING = """@problemName Example
@timeStamps false
@univariate true
@equalLength true
@seriesLength 3
@classLabel true {}
@data
"""


def labels(declared, *rows):
    text = HEADING.format(declared) + "".join(f"{row}\n" for row in rows)
    Path("example.ts").write_text(text)
    return load_from_ts_file("example.ts")[1].tolist()


by_case = labels("A a", "1,2,3:A", "4,5,6:a")
spaced = labels("1 2", "1,2,3: 1", "4,5,6:1")
print("declared A and a:", by_case, "written ' 1' and '1':", spaced)
assert by_case == ["a", "a"]
assert spaced == [" 1", "1"]
PYTHON
