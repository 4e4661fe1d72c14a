"""A whole classifier, trained by hand here and by autograd in PyTorch, from the same weights."""

import numpy as np
import pytest

import npformer as nf

from .helpers import assert_close, encoder_as_torch, load, torch, torch_encoder

STEPS, LENGTH, D, VOCABULARY, FEATURES, CLASSES = 20, 7, 8, 11, 5, 3
BATCH = 5  # odd: two workers get unequal parts


class TorchClassifier(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        config = model.config
        named = model.parameters()
        tokens = {"weight": named["embed.tokens.weight"]}
        self.takes_ids = model.vocab_size is not None
        if self.takes_ids:
            self.tokens = torch.nn.Embedding(VOCABULARY, D, dtype=torch.float64)
        else:
            self.tokens = torch.nn.Linear(FEATURES, D, dtype=torch.float64)
            tokens = {"weight": tokens["weight"].T, "bias": named["embed.tokens.bias"]}
        self.encoder = torch_encoder(config)
        self.classify = torch.nn.Linear(D, CLASSES, dtype=torch.float64)
        load(self.tokens, tokens)
        load(self.encoder, encoder_as_torch(named, config.n_layers, "encoder."))
        load(self.classify, {"weight": named["classify.weight"].T, "bias": named["classify.bias"]})
        position = torch.arange(LENGTH, dtype=torch.float64)[:, None]
        angle = position / 10000.0 ** (torch.arange(0, D, 2, dtype=torch.float64) / D)
        self.sinusoids = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

    def forward(self, x, mask):
        scale = D**0.5 if self.takes_ids else 1.0
        embedded = scale * self.tokens(x) + self.sinusoids
        encoded = self.encoder(embedded, src_key_padding_mask=~mask)
        tokens = encoded * mask[..., None]
        return self.classify(tokens.sum(dim=1) / mask.sum(dim=1, keepdim=True))


def batches(takes_ids):
    rng = np.random.default_rng(6)
    for _ in range(STEPS):
        if takes_ids:
            x = rng.integers(VOCABULARY, size=(BATCH, LENGTH))
        else:
            x = rng.standard_normal((BATCH, LENGTH, FEATURES))
        lengths = rng.integers(1, LENGTH + 1, size=(BATCH, 1))
        yield x, rng.integers(CLASSES, size=BATCH), np.arange(LENGTH) < lengths


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("takes_ids", [True, False], ids=["ids", "vectors"])
@pytest.mark.parametrize("workers", [1, 2])
def test_losses_agree_along_a_whole_training(norm, takes_ids, workers):
    config = nf.EncoderConfig(
        d_model=D,
        n_layers=2,
        n_heads=2,
        d_ff=12,
        max_len=LENGTH,
        norm=norm,
        activation="gelu",
    )
    ours = nf.SequenceClassifier(
        config,
        CLASSES,
        vocab_size=VOCABULARY if takes_ids else None,
        n_features=None if takes_ids else FEATURES,
        seed=8,
        dtype="float64",
    )
    theirs = TorchClassifier(ours)
    optimizer = nf.Adam(ours.parameters(), lr=0.01, betas=(0.9, 0.98))
    torch_optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01, betas=(0.9, 0.98))
    losses, torch_losses = [], []
    for x, labels, mask in batches(takes_ids):
        loss, gradients = ours.loss_and_gradients(
            x, labels, mask, workers=workers, label_smoothing=0.1
        )
        optimizer.step(gradients)
        losses.append(loss)

        torch_optimizer.zero_grad()
        torch_loss = torch.nn.functional.cross_entropy(
            theirs(torch.tensor(x), torch.tensor(mask)), torch.tensor(labels), label_smoothing=0.1
        )
        torch_loss.backward()
        torch_optimizer.step()
        torch_losses.append(torch_loss.item())

    assert_close(losses, torch_losses, "losses", agreement=1e-9)
