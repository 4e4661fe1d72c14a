"""A row of scores through softmax, and a gradient on its way back."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import draw_bars
from npformer import functional as F


def draw():
    """Return bars of the scores, their softmax, dy and dx."""
    x = np.array([1.0, 2.2, 0.3, -2.5, 1.6])
    dy = np.array([0.9, -0.6, 0.4, 1.2, 0.1])
    y, cache = F.softmax(x)
    dx = F.softmax_backward(dy, cache)
    mean = float((dy * y).sum())
    parts = (
        ("scores x", x, "value"),
        ("softmax y", y, "weight"),
        ("dy", dy, "gradient"),
        ("dx", dx, "gradient"),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.3))
    for axis, (title, values, kind) in zip(axes, parts, strict=True):
        draw_bars(axis, values, kind)
        axis.set_title(title, fontsize=10)
        axis.set_xticks(np.arange(1, 6))
    axes[2].axhline(mean, ls="--", lw=1.2, c="black")
    return {"row": figure}
