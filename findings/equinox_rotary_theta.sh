#!/usr/bin/env bash
# equinox 0.13.8: a second rotary layer turns by the angles of the first, whatever its theta.
#
# Expected: each RotaryPositionalEmbedding turns by its own theta.
#
# Seen: tables of angles are kept for all layers of a process by size and dtype, not by theta. A
# model with another theta for local attention, or a second model of the same head size, gets the
# angles of whichever layer ran first. `eqx.clear_caches()` between them gives each its own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet equinox==0.13.8 jax==0.10.2 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import equinox as eqx
import jax.numpy as jnp


def turned(theta):
    return eqx.nn.RotaryPositionalEmbedding(4, theta=theta)(jnp.ones((2, 4)))[1]


first, second = turned(10000.0), turned(100.0)
eqx.clear_caches()
alone = turned(100.0)
print("theta 10000:", first)
print("theta 100 after it:", second)
print("theta 100 alone:", alone)
assert (first == second).all()
assert abs(alone - second).max() > 0.05
PYTHON
