"""A row of scores through softmax, and a gradient on its way back."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F


def draw():
    """Return bars of the scores, their softmax, dy and dx."""
    x = np.array([1.0, 2.2, 0.3, -2.5, 1.6])
    dy = np.array([0.9, -0.6, 0.4, 1.2, 0.1])
    y, cache = F.softmax(x)
    dx = F.softmax_backward(dy, cache)
    mean = float((dy * y).sum())
    parts = (
        ("scores x", x, "#0072b2"),
        ("softmax y", y, "#009e73"),
        ("dy", dy, "#999999"),
        ("dx", dx, "#d55e00"),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.3))
    for axis, (title, values, colour) in zip(axes, parts, strict=True):
        axis.bar(np.arange(1, 6), values, color=colour)
        axis.axhline(0.0, lw=0.8, c="black")
        axis.set_title(title, fontsize=10)
        axis.set_xticks(np.arange(1, 6))
    axes[2].axhline(mean, ls="--", lw=1.2, c="black")
    return {"row": figure}
