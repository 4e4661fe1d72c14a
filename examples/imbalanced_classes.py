"""How do I train when one class is rare?
======================================

One in twenty of these generated series is of class 1: a little higher than the others, in noise. A
model that always says 0 is right 95 times out of 100, and useless. Class weights make labels of the
rare class count more in the loss; macro F1, a mean over classes, chooses the best epoch.
"""

from contextlib import suppress

import numpy as np

import npformer as nf


def series(n, rng):
    """Return series (n, 16, 1) and labels: the mean of class 1 is two deviations higher."""
    y = (rng.random(n) < 0.05).astype("int64")
    x = rng.normal(size=(n, 16)) + 0.5 * y[:, None]
    return x[..., None].astype("float32"), y


rng = np.random.default_rng(0)
train, test = series(3000, rng), series(3000, rng)
config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=16, positions="none")

measured = {}
print("class_weight  accuracy  macro F1  balanced accuracy  of class 1 found")
for class_weight in (None, {1: 4.0}, "balanced"):
    model = nf.SequenceClassifier(config, n_classes=2, n_features=1, seed=0)
    nf.fit(
        model,
        train,
        validation=0.2,  # held out by the seed, the same share of each class
        class_weight=class_weight,
        metric="macro_f1",
        epochs=8,
        batch_size=64,
        lr=3e-3,
        progress=False,
    )
    found = nf.evaluate(model, test)
    x, y = test
    recall = (model.predict(x)[y == 1] == 1).mean()
    measured[str(class_weight)] = found.accuracy, found.macro_f1, recall
    print(
        f"{class_weight!s:<12}  {found.accuracy:8.3f}  {found.macro_f1:8.3f}"
        f"  {found.balanced_accuracy:17.3f}  {recall:16.3f}"
    )

print("The most accurate model misses most of class 1; balanced weights take many others for it.")
print("Weights in between have the best macro F1 here: choose them by the metric that you need.")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for k, (name, values) in enumerate(measured.items()):
        axis.bar(np.arange(3) + 0.25 * (k - 1), values, width=0.22, label=f"weights: {name}")
    axis.set_xticks(range(3), ["accuracy", "macro F1", "of class 1 found"])
    figure.legend(loc="outside upper center", ncols=3)
    plt.show()
