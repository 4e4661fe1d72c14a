"""Attention, block and encoder beside torch.nn, with the same weights."""

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import Attention

from .helpers import (
    assert_close,
    assert_gradients_agree,
    attention_as_torch,
    block_as_torch,
    encoder_as_torch,
    leaf,
    load,
    normals,
    randomise,
)

torch = pytest.importorskip(
    "torch", reason="parity tests compare with PyTorch: python -m pip install '.[parity]'"
)

D, HEADS, D_FF = 8, 2, 12
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]], dtype=bool)
KEPT = MASK[..., None]


def batch():
    """Return x, and a gradient of y that is 0 at padding: nothing reads what comes out there."""
    x, dy = normals((*MASK.shape, D), (*MASK.shape, D), seed=2)
    return x, dy * KEPT


def run(layer, x, dy, mask):
    """Return result, gradient of x and gradients of parameters."""
    gradients = nf.Gradients(layer)
    y, cache = layer.forward(x, nf.Context(training=True, mask=mask))
    return y, layer.backward(dy, cache, gradients), gradients


def small(**options):
    return nf.EncoderConfig(
        **{"d_model": D, "n_layers": 2, "n_heads": HEADS, "d_ff": D_FF, "max_len": 5, **options}
    )


@pytest.mark.parametrize("n_heads", [1, 2, 8])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("mask", [None, MASK[:2]], ids=["full", "padded"])
def test_attention_agrees_with_multihead_attention(n_heads, causal, mask):
    ours = Attention(D, n_heads, causal=causal, seed=0, dtype="float64")
    randomise(ours)
    theirs = torch.nn.MultiheadAttention(D, n_heads, batch_first=True, dtype=torch.float64)
    load(theirs, attention_as_torch(ours.parameters()))

    x, dy = normals((2, 5, D), (2, 5, D), seed=2)
    y, dx, gradients = run(ours, x, dy, mask)
    x_torch = leaf(x)
    y_torch, _ = theirs(
        x_torch,
        x_torch,
        x_torch,
        key_padding_mask=None if mask is None else torch.tensor(~mask),
        attn_mask=torch.tensor(~np.tri(5, dtype=bool)) if causal else None,
    )
    y_torch.backward(torch.tensor(dy))

    assert_close(y, y_torch)
    assert_close(dx, x_torch.grad, "dx")
    assert_gradients_agree(attention_as_torch(gradients), theirs)


def test_a_bias_of_the_keys_changes_nothing_and_so_has_no_gradient():
    # It adds the same number to a whole row of scores. PyTorch packs it with the other two biases,
    # whose gradients would hide an error here.
    layer = Attention(D, HEADS, seed=0, dtype="float64")
    randomise(layer)
    x, dy = batch()
    _, _, gradients = run(layer, x, dy, MASK)
    largest = np.abs(gradients["query.bias"]).max()
    assert np.abs(gradients["key.bias"]).max() < 1e-13 * largest


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_block_agrees_with_transformer_encoder_layer(norm, activation):
    ours = nf.EncoderBlock(small(norm=norm, activation=activation), seed=0, dtype="float64")
    randomise(ours)
    theirs = torch_layer(norm, activation)
    load(theirs, block_as_torch(ours.parameters()))

    x, dy = batch()
    y, dx, gradients = run(ours, x, dy, MASK)
    x_torch = leaf(x)
    y_torch = theirs(x_torch, src_key_padding_mask=torch.tensor(~MASK))
    y_torch.backward(torch.tensor(dy))

    assert_close(y * KEPT, y_torch * torch.tensor(KEPT))
    assert_close(dx, x_torch.grad, "dx")
    assert_gradients_agree(block_as_torch(gradients), theirs)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_encoder_agrees_with_transformer_encoder(norm, n_layers):
    ours = nf.Encoder(small(norm=norm, n_layers=n_layers), seed=0, dtype="float64")
    randomise(ours)
    final_norm = torch.nn.LayerNorm(D, dtype=torch.float64) if norm == "pre" else None
    # Nested tensors only speed up PyTorch's inference; asked for with a pre-norm it warns.
    theirs = torch.nn.TransformerEncoder(
        torch_layer(norm, "gelu"), n_layers, norm=final_norm, enable_nested_tensor=False
    )
    load(theirs, encoder_as_torch(ours.parameters(), n_layers))

    x, dy = batch()
    y, dx, gradients = run(ours, x, dy, MASK)
    x_torch = leaf(x)
    y_torch = theirs(x_torch, src_key_padding_mask=torch.tensor(~MASK))
    y_torch.backward(torch.tensor(dy))

    assert_close(y * KEPT, y_torch * torch.tensor(KEPT))
    assert_close(dx, x_torch.grad, "dx")
    assert_gradients_agree(encoder_as_torch(gradients, n_layers), theirs)


def torch_layer(norm, activation):
    return torch.nn.TransformerEncoderLayer(
        D,
        HEADS,
        D_FF,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
