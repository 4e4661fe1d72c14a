#!/usr/bin/env bash
# scipy 1.17.1: loadarff refuses a class in quotes that the heading of the file declares.
#
# Expected: 'may be' is one of the declared classes; quotes around a name with a space are how
# ARFF writes it, in the heading and in the data alike.
#
# Seen: ValueError: "'may be' value not in ('yes', 'may be')". The quotes are removed in the
# heading, not in the data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scipy==1.17.1 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import io

from scipy.io import arff

text = """@relation example
@attribute value numeric
@attribute class {yes, 'may be'}
@data
1,yes
2,'may be'
"""
try:
    arff.loadarff(io.StringIO(text))
except ValueError as error:
    print("ValueError:", error)
    assert "'may be' value not in" in str(error)
else:
    raise SystemExit("it is read now")
PYTHON
