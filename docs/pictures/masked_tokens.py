"""What is hidden of a sentence in eight epochs, and the two gradients of a tied table."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import npformer as nf
from docs.site.colours import SIGNED
from npformer.data import mask_tokens

SENTENCE = "the food was good and the people at the bar were friendly"
EPOCHS = 8


def draw():
    """Return two panels: what is hidden, and the gradients."""
    words = SENTENCE.split()
    names = [*dict.fromkeys(words), "[MASK]"]
    ids = np.array([[names.index(word) for word in words]])
    rng, size, hidden = np.random.default_rng(4), len(names), len(names) - 1
    kinds = np.zeros((EPOCHS, len(words)))
    for epoch in range(EPOCHS):
        x, y = mask_tokens(ids, None, size, hidden, rng)
        kinds[epoch] = np.where(y < 0, 0, np.where(x == hidden, 3, np.where(x == y, 1, 2)))[0]

    figure, axes = plt.subplots(1, 3, figsize=(7.4, 3.4), width_ratios=[2.3, 1, 1])
    colours = ListedColormap(["#f2f2f2", "#a8bdd6", "#e08a3c", "#30507a"])
    axes[0].pcolormesh(kinds, cmap=colours, vmin=-0.5, vmax=3.5, ec="white", lw=1.0)
    axes[0].set_xticks(np.arange(len(words)) + 0.5, words, rotation=60, ha="right")
    axes[0].set_yticks(np.arange(EPOCHS) + 0.5, range(1, EPOCHS + 1))
    axes[0].set_ylabel("epoch")
    axes[0].set_title("what is to be guessed", fontsize=10)
    axes[0].invert_yaxis()

    parts = gradients(ids, size, hidden, place=words.index("good"))
    most = max(abs(part).max() for part in parts.values())
    for axis, (title, part) in zip(axes[1:], parts.items(), strict=True):
        axis.pcolormesh(part, cmap=SIGNED, vmin=-most, vmax=most, ec="white", lw=0.6)
        axis.set_title(title, fontsize=10)
        axis.set_yticks(np.arange(size) + 0.5, names if axis is axes[1] else [""] * size)
        axis.set_xticks([])
        axis.invert_yaxis()
    for axis in axes:
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    return {"hidden": figure}


def gradients(ids, size, hidden, place):
    """Return the gradients of a table as the output and as the embedding: (vocab_size, d)."""
    config = nf.EncoderConfig(d_model=6, n_layers=1, n_heads=2, d_ff=12, max_len=ids.shape[1])
    model = nf.MaskedLanguageModel(config, size, mask_id=hidden, seed=2, dtype="float64")
    x, y = ids.copy(), np.full(ids.shape, -1)
    x[0, place], y[0, place] = hidden, ids[0, place]
    whole = dict(model.loss_and_gradients(x, y)[1])["embed.tokens.weight"].copy()
    chosen = nf.Context(chosen=y >= 0)
    logits, caches = model.forward(x, chosen)
    loss = model.loss.forward(logits, y[y >= 0])
    of_output = nf.Gradients(model)
    model.output.backward(model.loss.backward(1.0, loss[1]), caches[-1][-1], of_output)
    output = dict(of_output)["embed.tokens.weight"]
    return {"dE, output": output, "dE, embedding": whole - output}
