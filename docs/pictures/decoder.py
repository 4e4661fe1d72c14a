"""What cross-attention reads in a model that reverses, and its two accuracies over the epochs."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from docs.site.colours import WEIGHTS

SYMBOLS, LENGTH = 8, 8


def draw():
    """Train a small model, and return its attention weights, and how often it is right."""
    rng = np.random.default_rng(0)
    train, unseen = pairs(rng, 1000), pairs(rng, 300)
    config = nf.EncoderConfig(d_model=32, n_layers=1, n_heads=4, d_ff=64, max_len=LENGTH + 2)
    sizes = {"source_vocab": SYMBOLS + 3, "target_vocab": SYMBOLS + 3}
    model = nf.EncoderDecoder(config, **sizes, seed=0, dtype="float64")
    forced, freely = [], []
    source, target = unseen
    for epoch in range(14):
        nf.fit(model, train, epochs=1, lr=1e-3, seed=epoch, progress=False)
        said = model(source, target[:, :-1]).argmax(axis=-1)
        forced.append((said == target[:, 1:]).mean())
        written = model.generate(source)
        freely.append(
            np.mean([w == t[1:-1].tolist() for w, t in zip(written, target, strict=True)])
        )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8), width_ratios=[1.1, 1.5])
    source = np.arange(3, 3 + SYMBOLS)[None]
    weights = reading(model, source, np.append([[1]], source[:, ::-1], axis=1))
    left.pcolormesh(weights, cmap=WEIGHTS, vmin=0.0, vmax=1.0, ec="white", lw=0.8)
    names = [chr(ord("a") + token - 3) for token in source[0]]
    left.set_xticks(np.arange(LENGTH) + 0.5, names)
    left.set_yticks(np.arange(LENGTH + 1) + 0.5, [*names[::-1], "end"])
    left.set(xlabel="source", ylabel="token to be written", aspect="equal")
    left.invert_yaxis()
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    epochs = np.arange(1, len(forced) + 1)
    right.plot(epochs, forced, marker="o", label="tokens, teacher forcing")
    right.plot(epochs, freely, marker="o", label="whole targets, running freely")
    right.set(xlabel="epoch", ylabel="proportion that is right", ylim=(-0.02, 1.05))
    right.legend(frameon=False, fontsize=9)
    return {"reverse": figure}


def pairs(rng, n):
    """Return sources of symbols, and the same sources reversed as targets."""
    source = rng.integers(3, 3 + SYMBOLS, (n, LENGTH))
    begin, end = np.full((n, 1), 1), np.full((n, 1), 2)
    return source, np.concatenate([begin, source[:, ::-1], end], axis=1)


def reading(model, source, target):
    """Return the weights on the source for each token of one target, averaged over heads."""
    block = model.decoder.blocks[0]
    memory = model.encoder(model.source(source))
    x = model.target(target)
    asked = block.mixer_norm(x + block.mixer(x))
    return block.cross_attention.explain(asked, memory, nf.Context())[0].mean(axis=0)
