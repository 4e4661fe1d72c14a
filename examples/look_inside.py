"""Which tokens does the model look at?
====================================

Train attention to return the symbol that the last token points to, then print where it looks.
``npformer train pointer``, then ``npformer look runs/pointer-attention``, shows it in pictures.
"""

from contextlib import suppress

import numpy as np

import npformer as nf
from npformer.tasks.sources.recipes import RECIPES

recipe = RECIPES["pointer"]
dataset = recipe.load("generated", 0)
model = recipe.model(dataset, seed=0, mixer="attention", n_heads=1)
nf.fit(model, dataset.train, epochs=4, batch_size=64, lr=3e-3, clip_norm=1.0, progress=False)
print(f"test accuracy {nf.evaluate(model, dataset.test).accuracy:.3f}\n")

x, y = dataset.test[0][:3], dataset.test[1][:3]
layers = model.explain(x)
for sample in range(3):
    position = x[sample, -1] - 8  # tokens 0 to 7 are symbols, 8 to 23 name positions
    print(f"the last token points to position {position}, symbol {y[sample, -1]}; it looks at")
    for layer in layers:
        weights = layer.matrices[sample, 0, -1]  # of the last token
        top = np.argsort(weights)[::-1][:3]
        shown = ", ".join(f"{i} ({weights[i]:.2f})" for i in top)
        print(f"  {layer.name}: positions {shown}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(layers), figsize=(7, 3.6), layout="constrained")
    tokens = ["abcdefgh"[i] if i < 8 else f"@{i - 8}" for i in x[0]]
    for axis, layer in zip(axes, layers, strict=True):
        axis.imshow(layer.matrices[0, 0])
        axis.set_xticks(range(len(tokens)), tokens, fontsize=7, rotation=90)
        axis.set_yticks(range(len(tokens)), tokens, fontsize=7)
        axis.set_title(f"{layer.name}: a row for each token that looks", fontsize=8)
    plt.show()
