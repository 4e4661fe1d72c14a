"""A block with dropout in every place, beside PyTorch's layer that drops the same entries."""

import sys

import numpy as np
import pytest

import npformer as nf
from tests.parity import helpers as h
from tests.parity.helpers import torch

BATCH, LENGTH, D, D_FF, HEADS = 3, 5, 8, 16, 2
RATES = {"dropout": 0.1, "attention_dropout": 0.3, "ffn_dropout": 0.2}
MASK = np.arange(LENGTH) < np.array([5, 3, 1])[:, None]


class Fixed(torch.nn.Module):
    def __init__(self, keep, rate):
        super().__init__()
        self.scaled = torch.tensor(keep / (1.0 - rate))

    def forward(self, x):
        return x * self.scaled


@pytest.fixture
def drawn(monkeypatch):
    module = sys.modules["npformer.functional.dropout"]
    masks = []
    draw = module.draw_kept

    def draw_and_note(*arguments):
        masks.append(draw(*arguments))
        return masks[-1]

    monkeypatch.setattr(module, "draw_kept", draw_and_note)
    return masks


@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])
@pytest.mark.parametrize("ffn", ["linear", "conv1d"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_block_with_dropout_is_transformer_encoder_layer(norm, ffn, mask, drawn, monkeypatch):
    config = nf.EncoderConfig(
        d_model=D,
        n_heads=HEADS,
        d_ff=D_FF,
        max_len=LENGTH,
        norm=norm,
        activation="gelu",
        ffn=ffn,
        **RATES,
    )
    block = nf.Encoder(config, dtype="float64").blocks[0]
    h.randomise(block)
    x, dy = h.normals((BATCH, LENGTH, D), (BATCH, LENGTH, D))
    if mask is not None:
        dy[~mask] = 0.0  # PyTorch has numbers of its own at padding
    context = nf.Context(training=True, generator=np.random.default_rng(5), mask=mask)
    gradients = nf.Gradients(block.parameters())
    y, cache = block.forward(x, context)
    dx = block.backward(dy, cache, gradients)
    shapes = [keep.shape for keep in drawn]
    features = (BATCH, LENGTH, D)
    weights = (BATCH, HEADS, LENGTH, LENGTH)
    assert shapes == [weights, features, (BATCH, LENGTH, D_FF), features]
    of_weights, after_attention, inside, after_network = drawn
    theirs = h.torch_block(config).train()
    theirs.dropout1 = Fixed(after_attention, RATES["dropout"])
    theirs.dropout = Fixed(inside, RATES["ffn_dropout"])
    theirs.dropout2 = Fixed(after_network, RATES["dropout"])
    drop = Fixed(of_weights, RATES["attention_dropout"])

    def attention(query, key, value, allowed, *_, **__):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores if allowed is None else scores + allowed
        return drop(torch.softmax(scores, -1)) @ value

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention)
    h.load(theirs, h.block_as_torch(block.parameters()))
    x_torch = h.leaf(x)
    padding = None if mask is None else torch.tensor(~mask)
    y_torch = theirs(x_torch, src_key_padding_mask=padding)
    y_torch.backward(torch.tensor(dy))
    is_token = np.ones((BATCH, LENGTH), bool) if mask is None else mask
    h.assert_close(y[is_token], y_torch.detach().numpy()[is_token])
    h.assert_close(dx, x_torch.grad, "dx")
    h.assert_gradients_agree(h.block_as_torch(gradients), theirs)
