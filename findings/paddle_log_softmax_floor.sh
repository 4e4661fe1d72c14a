#!/usr/bin/env bash
# paddlepaddle 3.3.1: log_softmax never goes below -64, and no cross entropy above 64, on the CPU.
#
# Expected: x - logsumexp(x): [0, -63, -110, -1000] for these scores, in float32 and float64.
#
# Seen: [0, -63, -64, -64] in both. A row that is wrong by 110 or by 1,000 costs 64, while its
# gradient is that of the true loss: losses and log-likelihoods look better than they are.
# logsumexp has no such bound.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet paddlepaddle==3.3.1 numpy==2.4.6 setuptools==84.2.1
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np
import paddle
import paddle.nn.functional as functional

paddle.set_device("cpu")
label = paddle.to_tensor(np.array([0]))
for dtype in ("float32", "float64"):
    scores = paddle.to_tensor(np.array([0, -63, -110, -1000], dtype))
    by_log_softmax = functional.log_softmax(scores).tolist()
    by_logsumexp = (scores - paddle.logsumexp(scores)).tolist()
    wrong = paddle.to_tensor(np.array([[0, 1000]], dtype))
    loss = functional.cross_entropy(wrong, label).item()
    print(dtype, "log_softmax", by_log_softmax, "by logsumexp", by_logsumexp, "loss", loss)
    assert by_log_softmax == [0, -63, -64, -64]
    assert by_logsumexp == [0, -63, -110, -1000]
    assert loss == 64
PYTHON
