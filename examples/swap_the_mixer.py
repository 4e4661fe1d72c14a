"""What changes with another mixer?
================================

Only one word in the configuration. To look up values by their keys, tokens have to be compared:
attention can do that; a synthesizer and a Fourier transform cannot.
"""

from contextlib import suppress

import npformer as nf
from npformer.tasks.sources.recipes import RECIPES

recipe = RECIPES["recall"]
dataset = recipe.load("generated", 0)
epochs = 3
steps = epochs * len(dataset.train[0]) // 64

accuracies = {}
print("mixer               parameters  accuracy (chance 0.125)")
for mixer in ("attention", "dense_synthesizer", "fourier", "identity"):
    model = recipe.model(dataset, seed=0, mixer=mixer)
    nf.fit(
        model,
        dataset.train,
        epochs=epochs,
        batch_size=64,
        lr=recipe.training["lr"],
        schedule=nf.optim.cosine(steps, warmup=steps // 10),
        clip_norm=1.0,
        progress=False,
    )
    found = nf.evaluate(model, dataset.test)
    accuracies[mixer] = found.accuracy
    print(f"{mixer:<18}  {model.n_parameters():>10,}  {found.accuracy:.4f}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
    axis.barh(list(accuracies), list(accuracies.values()))
    axis.axvline(0.125, ls="--", c="C1")
    axis.invert_yaxis()
    axis.set(xlabel="accuracy; dashed: chance", xlim=(0, 1))
    plt.show()
