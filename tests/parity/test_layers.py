from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import Attention
from tests.parity import helpers as h
from tests.parity.formulas import rotary
from tests.parity.helpers import D_FF, HEADS, D, small, torch

MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]], dtype=bool)
X, DY = h.normals((*MASK.shape, D), (*MASK.shape, D), seed=2)


@pytest.mark.parametrize("n_heads", [1, 2, 8])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("mask", [None, MASK[:2]], ids=["full", "padded"])
def test_attention_agrees_with_multihead_attention(n_heads, causal, mask):
    ours = Attention(D, n_heads, causal=causal, seed=0, dtype="float64")
    h.randomise(ours)
    theirs = torch.nn.MultiheadAttention(D, n_heads, batch_first=True, dtype=torch.float64)
    later = torch.tensor(~np.tri(5, dtype=bool)) if causal else None
    padding = None if mask is None else torch.tensor(~mask)
    h.assert_layer_agrees(
        ours,
        theirs,
        h.attention_as_torch,
        X[:2],
        DY[:2],
        call=lambda x: theirs(x, x, x, key_padding_mask=padding, attn_mask=later)[0],
        mask=mask,
        padding_counts=True,
    )


def test_a_bias_of_the_keys_has_no_gradient():
    # It adds the same number to a whole row of scores. PyTorch packs it with the other two biases,
    # whose gradients would hide an error here.
    layer = Attention(D, HEADS, seed=0, dtype="float64")
    h.randomise(layer)
    gradients = nf.Gradients(layer)
    _, cache = layer.forward(X, nf.Context(mask=MASK))
    layer.backward(DY * MASK[..., None], cache, gradients)
    largest = np.abs(gradients["query.bias"]).max()
    assert np.abs(gradients["key.bias"]).max() < 1e-13 * largest


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_block_agrees_with_transformer_encoder_layer(norm, activation):
    config = small(norm=norm, activation=activation)
    ours = nf.EncoderBlock(config, seed=0, dtype="float64")
    h.randomise(ours)
    theirs = h.torch_block(config)

    def call(x):
        return theirs(x, src_key_padding_mask=torch.tensor(~MASK))

    h.assert_layer_agrees(ours, theirs, h.block_as_torch, X, DY, call=call, mask=MASK)


class RotaryAttention(torch.nn.MultiheadAttention):
    """PyTorch's parameters, its fused attention, and queries and keys turned by complex numbers."""

    def forward(self, x, causal, theta):
        joined = torch.nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        projections = joined.chunk(3, -1)
        query, key, value = (
            p.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for p in projections
        )
        at = np.arange(x.shape[1])
        query, key = (rotary(vectors, at, theta) for vectors in (query, key))
        y = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return self.out_proj(y.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("kind", [nf.mixers.GeneralAttention, nf.mixers.BlockwiseAttention])
@pytest.mark.parametrize(("causal", "theta"), [(False, 1e4), (True, 7.0)])
def test_attention_with_rotary_positions(kind, causal, theta):
    ours = kind(D, HEADS, causal=causal, rope_theta=theta, seed=0, dtype="float64")
    h.randomise(ours)
    for layer in (ours, nf.fast(ours)):
        theirs = RotaryAttention(D, HEADS, batch_first=True, dtype=torch.float64)
        call = partial(theirs, causal=causal, theta=theta)
        h.assert_layer_agrees(layer, theirs, h.attention_as_torch, X, DY, call=call)


class Gated(torch.nn.Module):
    """PyTorch has no module of this name: its maps, as Llama's code composes them."""

    def __init__(self, bias, activation):
        super().__init__()
        options = {"bias": bias, "dtype": torch.float64}
        self.norm = torch.nn.RMSNorm(D, 1e-5, dtype=torch.float64)
        self.gate, self.up = (torch.nn.Linear(D, D_FF, **options) for _ in range(2))
        self.down = torch.nn.Linear(D_FF, D, **options)
        self.activation = getattr(torch.nn.functional, activation)

    def forward(self, x):
        n = self.norm(x)
        return self.down(self.activation(self.gate(n)) * self.up(n))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["silu", "gelu", "relu"])
def test_a_gated_network_behind_an_rms_norm(bias, activation):
    gated = nf.layers.GatedFeedForward(D, D_FF, activation, bias=bias, seed=0, dtype="float64")
    ours = nf.layers.Sequential(nf.layers.RMSNorm(D, dtype="float64"), gated)
    h.randomise(ours)

    def layout(named):
        their_arrays = {"norm.weight": named["chain.0.gamma"]}
        for name, value in named.items():
            if name.startswith("chain.1."):
                their_arrays[name.removeprefix("chain.1.")] = value.T
        return their_arrays

    h.assert_layer_agrees(ours, Gated(bias, activation), layout, X, DY)
