"""Rows before and after layer norm, and what its backward pass removes from a gradient."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F


def draw():
    """Return the picture of three rows and one gradient."""
    rng = np.random.default_rng(3)
    d = 8
    x = np.array([[6.0], [0.0], [-3.0]]) + np.array([[2.0], [0.5], [1.2]]) * rng.normal(size=(3, d))
    ones, zeros = np.ones(d), np.zeros(d)
    y, cache = F.layer_norm(x, ones, zeros)
    dy = np.zeros_like(x)
    dy[2] = 0.8 + 0.7 * y[2] + 0.5 * rng.normal(size=d)
    dx, _, _ = F.layer_norm_backward(dy, cache)
    s = np.sqrt(x.var(axis=-1) + 1e-5)

    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.8), width_ratios=[1, 1, 1.2])
    features = np.arange(1, d + 1)
    for row, (before, after) in enumerate(zip(x, y, strict=True), 1):
        axes[0].plot(features, before, "o-", ms=3.5, label=f"row {row}")
        axes[1].plot(features, after, "o-", ms=3.5)
    axes[0].set_title("x", fontsize=10)
    axes[1].set_title("normalised", fontsize=10)
    axes[0].legend(fontsize=9, frameon=False, loc="upper right", handlelength=1.2)
    axes[0].set_ylim(top=18)
    width = 0.4
    axes[2].bar(features - width / 2, dy[2], width, color="#999999", label="g")
    axes[2].bar(features + width / 2, dx[2] * s[2], width, color="#009e73", label="s dx")
    axes[2].axhline(0, lw=0.8, c="black")
    axes[2].set_title("gradient of row 3", fontsize=10)
    axes[2].legend(fontsize=9, frameon=False, ncols=2, loc="upper right")
    axes[2].set_ylim(top=max(dy[2].max(), 1) * 1.45)
    for axis in axes:
        axis.set_xlabel("feature")
        axis.set_xticks(features)
    return {"rows": figure}
