import numpy as np
import pytest

import npformer as nf
from npformer.layers import BlockwiseCrossAttention, CrossAttention
from npformer.models import Transformer
from tests.parity import helpers as h
from tests.parity.helpers import D_FF, HEADS, D, small, torch

MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=bool)
OF_MEMORY = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]], dtype=bool)
X, MEMORY, DY = h.normals((*MASK.shape, D), (*OF_MEMORY.shape, D), (*MASK.shape, D), seed=2)
KEPT = MASK[..., None].astype("float64")
LATER = torch.tensor(~np.tri(MASK.shape[1], dtype=bool))


def assert_agrees(ours, theirs, as_torch, call):
    h.randomise(ours)
    h.load(theirs, as_torch(ours.parameters()))
    x, memory = h.leaf(X), h.leaf(MEMORY)
    y_torch = call(x, memory)
    y_torch.backward(torch.tensor(DY * KEPT))
    gradients = nf.Gradients(ours)
    y, cache = ours.forward(X, MEMORY, nf.Context(mask=MASK, memory_mask=OF_MEMORY))
    dx, dmemory = ours.backward(DY * KEPT, cache, gradients)
    h.assert_close(y * KEPT, y_torch * torch.tensor(KEPT))
    h.assert_close(dx, x.grad, "dx")
    h.assert_close(dmemory, memory.grad, "dmemory")
    h.assert_gradients_agree(as_torch(gradients), theirs)


@pytest.mark.parametrize("kind", [CrossAttention, BlockwiseCrossAttention])
@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_cross_attention_agrees_with_multihead_attention(kind, n_heads):
    theirs = torch.nn.MultiheadAttention(D, n_heads, batch_first=True, dtype=torch.float64)
    padding = torch.tensor(~OF_MEMORY)
    ours = kind(D, n_heads, seed=0, dtype="float64")

    def call(x, memory):
        return theirs(x, memory, memory, key_padding_mask=padding)[0]

    assert_agrees(ours, theirs, h.attention_as_torch, call)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("memory", ["stored", "blocks"])
def test_block_agrees_with_transformer_decoder_layer(norm, activation, memory):
    config = small(norm=norm, activation=activation, causal=True, memory=memory)
    theirs = h.torch_block(config, torch.nn.TransformerDecoderLayer)
    masks = {"tgt_key_padding_mask": ~MASK, "memory_key_padding_mask": ~OF_MEMORY}
    masks = {name: torch.tensor(mask) for name, mask in masks.items()}
    ours = nf.DecoderBlock(config, seed=0, dtype="float64")
    as_torch = h.decoder_block_as_torch
    assert_agrees(ours, theirs, as_torch, lambda x, memory: theirs(x, memory, LATER, **masks))


class Both(nf.TwoInputLayer):
    def __init__(self, config):
        transformer = Transformer(config, 3, 3, dtype="float64")
        self.encoder, self.decoder = transformer.encoder, transformer.decoder

    def forward(self, x, memory, context):
        memory, below = self.encoder.forward(memory, context.swap())
        y, cache = self.decoder.forward(x, memory, context)
        return y, (below, cache)

    def backward(self, dy, cache, gradients):
        below, cache = cache
        dx, dmemory = self.decoder.backward(dy, cache, gradients)
        return dx, self.encoder.backward(dmemory, below, gradients)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # it is about PyTorch's speed alone
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_both_stacks_agree_with_transformer(norm):
    config = small(norm=norm, activation="relu")
    theirs = torch.nn.Transformer(
        d_model=D,
        nhead=HEADS,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dim_feedforward=D_FF,
        dropout=0.0,
        norm_first=norm == "pre",
        batch_first=True,
        dtype=torch.float64,
    )
    if norm == "post":  # there PyTorch has a norm behind the last one, the paper has none
        theirs.encoder.norm = theirs.decoder.norm = None
    theirs.encoder.enable_nested_tensor = False

    def call(x, memory):
        return theirs(
            memory,
            x,
            tgt_mask=LATER,
            src_key_padding_mask=torch.tensor(~OF_MEMORY),
            tgt_key_padding_mask=torch.tensor(~MASK),
            memory_key_padding_mask=torch.tensor(~OF_MEMORY),
        )

    assert_agrees(Both(config), theirs, lambda named: h.transformer_as_torch(named, 2), call)


def test_a_language_model_agrees_with_one_of_a_tied_table():
    config = small(causal=True, positions="none", scale_embeddings=False, activation="relu")
    model = nf.LanguageModel(config, vocab_size=7, dtype="float64")
    h.randomise(model)
    ids = np.random.default_rng(0).integers(0, 7, (3, 5))
    y = np.random.default_rng(1).integers(-1, 7, (3, 5))
    loss, gradients = model.loss_and_gradients(ids, y, label_smoothing=0.1)
    table = h.leaf(model.parameters()["embed.tokens.weight"])
    theirs = h.torch_encoder(config)
    h.load(theirs, h.encoder_as_torch(model.parameters(), 2, "encoder."))
    later = torch.tensor(~np.tri(5, dtype=bool))
    logits = theirs(table[torch.tensor(ids)], mask=later) @ table.T
    expected = torch.nn.functional.cross_entropy(
        logits.reshape(-1, 7), torch.tensor(y.reshape(-1)), ignore_index=-1, label_smoothing=0.1
    )
    expected.backward()
    np.testing.assert_allclose(loss, expected.item(), rtol=1e-12)
    h.assert_close(gradients["embed.tokens.weight"], table.grad, "gradient of the table")
    h.assert_gradients_agree(h.encoder_as_torch(gradients, 2, "encoder."), theirs)
