#!/usr/bin/env bash
# scikit-learn 1.9.1: a RobustScaler that was fitted on an array doesn't center sparse rows.
#
# Expected: the same numbers as for the dense rows, or an error: `fit` refuses sparse rows while
# `with_centering` is true, and StandardScaler refuses them in `transform` too.
#
# Seen: `transform` divides by the range and leaves the median in, without a word: 6.67 for -1.
# `inverse_transform` of sparse rows leaves it out as well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import scipy.sparse
from sklearn.preprocessing import RobustScaler, StandardScaler

rows = np.array([[10.0], [11.0], [12.0], [13.0]])
sparse_rows = scipy.sparse.csr_matrix(rows)
scaler = RobustScaler().fit(rows)
dense = scaler.transform(rows)
sparse = scaler.transform(sparse_rows).toarray()
print("dense ", dense.ravel().tolist())
print("sparse", sparse.ravel().tolist())


def refuses(call):
    """Tell whether a call raises a ValueError."""
    try:
        call()
    except ValueError:
        return True
    return False


assert refuses(lambda: RobustScaler().fit(sparse_rows))
assert refuses(lambda: StandardScaler().fit(rows).transform(sparse_rows))
assert np.allclose(dense.ravel(), [-1, -1 / 3, 1 / 3, 1])
assert np.allclose(sparse.ravel(), rows.ravel() / 1.5)
PYTHON
