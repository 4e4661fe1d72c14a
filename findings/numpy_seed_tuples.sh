#!/usr/bin/env bash
# numpy 2.4.6: default_rng((7, 1)) is default_rng(2**32 + 7), and default_rng((7, 0)) is
# default_rng(7).
#
# Expected: a tuple such as (seed, worker) names streams that no other seed has: it is the usual
# way to give each worker a generator.
#
# Seen: the numbers of a tuple are joined as digits of one large number, so worker 0 draws what
# the seed alone draws, and worker 1 what another seed draws. SeedSequence(seed,
# spawn_key=(worker,)) is different from all of them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import numpy as np


def first(seed):
    return int(np.random.default_rng(seed).integers(2**63))


print("(7, 1):", first((7, 1)), "2**32 + 7:", first(2**32 + 7))
print("(7, 0):", first((7, 0)), "7:", first(7), "(7,):", first((7,)))
child = np.random.SeedSequence(7, spawn_key=(0,))
print("spawn_key=(0,):", first(child))
assert first((7, 1)) == first(2**32 + 7)
assert first((7, 0)) == first(7) == first((7,))
assert first(child) != first(7)
PYTHON
