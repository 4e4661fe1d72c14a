"""Draws of dropout, and their mean."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import SIGNED
from npformer import functional as F


def draw():
    """Return an array, three draws and the mean of 2000."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.2, 1.0, size=(4, 6))
    draws = [F.dropout(x, 0.5, np.random.default_rng(seed))[0] for seed in range(2000)]
    shown = (
        ("x", x),
        *((f"draw {k}", draws[k]) for k in range(3)),
        ("mean", np.mean(draws, axis=0)),
    )
    figure, axes = plt.subplots(1, 5, figsize=(7.2, 1.5))
    for axis, (title, matrix) in zip(axes, shown, strict=True):
        axis.pcolormesh(matrix, cmap=SIGNED, vmin=-2.0, vmax=2.0, ec="#cccccc", lw=0.8)
        axis.set_title(title, fontsize=10)
        axis.invert_yaxis()
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.spines[:].set_visible(False)
    return {"masks": figure}
