"""One digit, and the matrices of every layer and head of a small model."""

import matplotlib.pyplot as plt

import npformer as nf
from docs.site.colours import WEIGHTS
from npformer.tasks.sources.recipes import RECIPES


def draw():
    """Train attention for a few epochs, and draw its matrices for the first test image."""
    recipe = RECIPES["digits"]
    dataset = recipe.load("stratified", 0)
    model = recipe.model(dataset, seed=0)
    nf.fit(model, dataset.train, epochs=8, lr=2e-3, seed=0, workers=1, progress=False)
    image = dataset.test[0][:1]
    layers = nf.explain(model, image)
    figure = plt.figure(figsize=(7.2, 3.1))
    grid = figure.add_gridspec(2, 5, width_ratios=[1.6, 1, 1, 1, 1])
    first = figure.add_subplot(grid[:, 0])
    first.pcolormesh(image[0], cmap="gray_r")
    first.set_ylabel("token")
    axes = [first]
    for i, layer in enumerate(layers):
        for head, matrix in enumerate(layer.matrices[0]):
            axis = figure.add_subplot(grid[i, head + 1])
            axis.pcolormesh(matrix, cmap=WEIGHTS, vmin=0.0, vmax=1.0)
            axis.set_xlabel(f"head {head}", fontsize=9)
            if head == 0:
                axis.set_ylabel(f"block {i}", fontsize=9)
            axes.append(axis)
    for axis in axes:
        axis.invert_yaxis()
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_visible(False)
    first.set_yticks([row + 0.5 for row in range(8)], range(8), fontsize=9)
    first.tick_params(length=0)
    return {"heads": figure}
