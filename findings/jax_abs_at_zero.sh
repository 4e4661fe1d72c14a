#!/usr/bin/env bash
# jax 0.10.2 (and 0.12.0.1): the gradient of abs at 0 is 1.
#
# Expected: sign(0) = 0, the choice of torch, mlx, tinygrad and autograd; the value at a kink that
# favours neither side.
#
# Seen: 1. An L1 penalty moves weights that are 0 already, and a mean absolute error has a
# gradient at predictions that are exact. jnp.sign(0) is 0, so x * sign(x) has another gradient
# than abs(x).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet jax==0.10.2 numpy==2.4.6
cd "$folder"
env/bin/python - <<'PYTHON'
import jax
import jax.numpy as jnp

zeros = jnp.zeros(3)
penalty = jax.grad(lambda w: jnp.abs(w).sum())(zeros)
y = jnp.array([0.0, 1.0, 2.0])
error = jax.grad(lambda prediction: jnp.mean(jnp.abs(prediction - y)))(y)
print("jax", jax.__version__)
print("gradient of sum(abs(w)) at w = 0:", penalty)
print("gradient of the mean absolute error of exact predictions:", error)
assert penalty.tolist() == [1.0, 1.0, 1.0]
assert all(abs(value - 1 / 3) < 1e-6 for value in error.tolist())
assert jnp.sign(0.0) == 0.0
PYTHON
