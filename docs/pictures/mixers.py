"""The weights of three mixers for one digit: the picture on the front page."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from docs.site.colours import SIGNED, WEIGHTS
from npformer.tasks.sources.recipes import RECIPES

NAMES = {
    "attention": "attention:\ncomputed from this image",
    "dense_synthesizer": "dense synthesizer:\neach row guesses by itself",
    "fourier": "Fourier:\nthe same for every image",
}


def draw():
    """Train three models, and draw the first matrix of each for the first test image."""
    recipe = RECIPES["digits"]
    dataset = recipe.load("stratified", 0)
    image = dataset.test[0][:1]
    figure, axes = plt.subplots(1, 4, figsize=(9.2, 2.9), width_ratios=[1, 1, 1, 1])
    axes[0].pcolormesh(image[0], cmap="gray_r")
    axes[0].set_title("one digit,\neight rows: eight tokens", fontsize=10)
    axes[0].set_ylabel("row")
    for axis, (mixer, title) in zip(axes[1:], NAMES.items(), strict=True):
        model = recipe.model(dataset, seed=0, mixer=mixer, n_heads=1)
        nf.fit(model, dataset.train, epochs=10, lr=2e-3, seed=0, workers=1, progress=False)
        matrix = model.explain(image)[0].matrices[0, 0]
        shown = matrix.real
        limit = np.abs(shown).max()
        colours = WEIGHTS if mixer != "fourier" else SIGNED
        low = 0.0 if mixer != "fourier" else -limit
        axis.pcolormesh(shown, cmap=colours, vmin=low, vmax=limit)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("weight of row")
    for axis in axes:
        axis.invert_yaxis()
        axis.set_aspect("equal")
        axis.set_xticks(np.arange(8) + 0.5, range(8), fontsize=8)
        axis.set_yticks(np.arange(8) + 0.5, range(8), fontsize=8)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
    axes[0].set_xticks([])
    return {"take": figure}
