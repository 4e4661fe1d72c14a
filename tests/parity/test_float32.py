"""float32 beside PyTorch's float32: our error is no larger. Both are compared with float64.

The other parity tests compare in float64, where rounding is out of sight.
"""

import math

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu import KERNELS
from tests.kernels import helpers

from .helpers import normals, torch

BATCH, LENGTH, N_HEADS, D_HEAD = 4, 64, 2, 16
D = N_HEADS * D_HEAD
SEEDS = range(5)


def drawn(seed):
    x, dy, *weights = normals(*2 * [(BATCH, LENGTH, D)], *3 * [(D, D)], seed=seed)
    return x, [a for W in weights for a in (W / D**0.5, np.zeros(D))], dy


def near(offset, dy_size):
    """Return calls whose scores lie near an offset: that of two biases of one feature a head."""

    def make(seed):
        x, maps, dy = drawn(seed)
        size = math.sqrt(abs(offset) * math.sqrt(D_HEAD))
        for i, value in ((0, size), (2, math.copysign(size, offset))):
            maps[i] *= 0.2
            maps[i][:, ::D_HEAD] = 0.0
            maps[i + 1][::D_HEAD] = value
        return x, maps, dy_size * dy

    return make


def saturated(top, all_rows):
    """Return calls with q = k: each token attends to itself, at scores up to `top` or all of it."""

    def make(seed):
        x, maps, dy = drawn(seed)
        heads = x.reshape(-1, D_HEAD)
        lengths = np.linalg.norm(heads, axis=-1, keepdims=True)
        x = (heads / (lengths if all_rows else lengths.max())).reshape(x.shape)
        maps[0] = maps[2] = np.eye(D) * math.sqrt(top * math.sqrt(D_HEAD))
        return x, maps, dy

    return make


CALLS = {
    "scores near 0": near(0.0, 1.0),
    "scores near +40, gradients of 1e-22": near(40.0, 1e-22),
    "scores near -43, gradients of 1e+22": near(-43.0, 1e22),
    "scores near +60, gradients of 1e-30": near(60.0, 1e-30),
    "scores near -60, gradients of 1e+30": near(-60.0, 1e30),
    "saturated, scores of 40": saturated(40.0, all_rows=True),
    "saturated, scores up to 161": saturated(161.0, all_rows=False),
}


def by_pytorch(x, maps, dy):
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, *maps)]
    heads = [leaves[0] @ leaves[i] + leaves[i + 1] for i in (1, 3, 5)]
    heads = [head.reshape(BATCH, LENGTH, N_HEADS, D_HEAD) for head in heads]
    y = torch.nn.functional.scaled_dot_product_attention(*(h.transpose(1, 2) for h in heads))
    y = y.transpose(1, 2).reshape(x.shape)
    gradients = torch.autograd.grad(y, leaves, torch.tensor(dy))
    return [a.detach().numpy() for a in (y, *gradients)]


def by_kernel(x, maps, dy, store):
    forward, backward = KERNELS["attention_heads"]
    y, cache = forward(x, *maps, N_HEADS, False, store, context=EngineContext())
    return [y, *backward(dy, cache)]


def exactly(x, maps, dy):
    case = helpers.Case("attention_heads", (x, *maps), (N_HEADS, False, None))
    return helpers.expected(case, "float32", dy)


def error(ours, exact):
    """Return the largest error of y, dx and weights' gradients, relative to the largest entry."""
    pairs = [(a, b) for a, b in zip(ours, exact, strict=True) if b.ndim > 1]
    return np.max([np.abs(a - b).max() / np.abs(b).max() for a, b in pairs])  # NaN if there is one


@pytest.mark.parametrize("store", [True, False], ids=["stored", "again"])
@pytest.mark.parametrize("name", CALLS)
def test_attention_is_as_exact_as_pytorchs_fused_one(name, store):
    ours, theirs = [], []
    for seed in SEEDS:
        x, maps, dy = CALLS[name](seed)
        exact = exactly(x, maps, dy)
        in_float32 = x.astype("float32"), [a.astype("float32") for a in maps], dy.astype("float32")
        ours.append(error(by_kernel(*in_float32, store), exact))
        theirs.append(error(by_pytorch(*in_float32), exact))
    assert np.median(ours) <= 1.5 * np.median(theirs), (ours, theirs)


ROWS = {"a mean of 0": lambda n: n, "a mean of 10,000": lambda n: 1e4 + n}
ROWS["a mean of 1,000,000"] = lambda n: 1e6 + n
ROWS["a constant"] = lambda n: np.full_like(n, 12345.678)


@pytest.mark.parametrize("name", ROWS)
def test_layer_norm_is_as_exact_as_pytorchs(name):
    x, gamma, beta = normals((64, 768), (768,), (768,))
    in_float32 = [a.astype("float32") for a in (ROWS[name](x), gamma, beta)]
    exact, _ = F.layer_norm(*(a.astype("float64") for a in in_float32))
    x, *maps = map(torch.tensor, in_float32)
    theirs = torch.nn.functional.layer_norm(x, (768,), *maps)
    bound = 1.5 * np.abs(theirs.numpy() - exact).max()
    forward, _ = KERNELS["layer_norm"]
    for y, _ in (F.layer_norm(*in_float32), forward(*in_float32, context=EngineContext())):
        assert np.abs(y - exact).max() <= bound
