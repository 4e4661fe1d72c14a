"""The gradients that tokens get from three kinds of pooling."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import SIGNED
from npformer import functional as F
from npformer.core import Context, Gradients
from npformer.layers.pooling import FirstToken, Flatten


def draw():
    """Return the sequence and three gradients."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 5, 4))
    mask = np.array([[True, True, True, False, False]])
    dy = rng.normal(size=(1, 4))
    of_mean = F.mean_pooling_backward(dy, F.mean_pooling(x, mask)[1])
    layers = {"first": FirstToken(), "flatten": Flatten()}
    shown = {"x": np.where(mask[..., None], x, 0.0), "dx, mean": of_mean}
    for name, layer in layers.items():
        y, cache = layer.forward(x, Context(mask=mask))
        given = dy if y.shape == dy.shape else rng.normal(size=y.shape)
        shown[f"dx, {name}"] = layer.backward(given, cache, Gradients(layer))
    figure, axes = plt.subplots(1, 4, figsize=(6.6, 2.1))
    for axis, (title, array) in zip(axes, shown.items(), strict=True):
        axis.pcolormesh(array[0], cmap=SIGNED, vmin=-1.6, vmax=1.6, ec="white", lw=0.8)
        axis.add_patch(plt.Rectangle((0, 3), 4, 2, fill=False, hatch="//", ec="#999999", lw=0))
        axis.set_title(title, fontsize=10)
        axis.invert_yaxis()
        axis.set(xticks=[], yticks=np.arange(5) + 0.5, aspect="equal")
        axis.set_yticklabels([f"token {t}" for t in range(1, 6)] if title == "x" else [])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    return {"ways": figure}
