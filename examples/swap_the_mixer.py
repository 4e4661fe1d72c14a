"""What changes with another mixer?
================================

Only one word in the configuration. To look up values by their keys, tokens have to be compared:
attention can do that, a synthesizer and a Fourier transform cannot.
"""

import npformer as nf
from npformer.tools.recipes import RECIPES

recipe = RECIPES["recall"]
dataset = recipe.load("generated", 0)
epochs = 3
steps = epochs * len(dataset.train[0]) // 64

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
    print(f"{mixer:<18}  {model.n_parameters():>10,}  {found.accuracy:.4f}")
