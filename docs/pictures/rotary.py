"""Pairs of features that turn with the position, and scores that depend on distance alone."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F


def draw():
    """Return the picture of two turning pairs and of the scores of two queries."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), width_ratios=[1, 1.5])
    pairs(axes[0])
    scores(axes[1])
    return {"turns": figure}


def pairs(axis):
    """Draw the first two pairs of a row with eight features at the positions 0 to 5."""
    length, d = 6, 8
    x = np.zeros((length, d))
    x[:, 0], x[:, 1] = 1.0, 1.6  # the first features of pairs 0 and 1
    y, _ = F.rotary(x, np.arange(length))
    t = np.linspace(0.0, 2.0 * np.pi, 121)
    for pair, (colour, radius) in enumerate((("C0", 1.0), ("C1", 1.6))):
        axis.plot(radius * np.cos(t), radius * np.sin(t), color="#999999", lw=0.8)
        a, b = y[:, pair], y[:, pair + d // 2]
        axis.plot(a, b, "o", ms=5, color=colour, label=f"pair {pair}")
        for position in range(length):
            out = (radius + 0.22) / radius
            where = out * a[position], out * b[position]
            axis.text(*where, str(position), ha="center", va="center", fontsize=8, color=colour)
    axis.plot(0, 0, "+", color="#444444", ms=6)
    axis.set(aspect="equal", xticks=[], yticks=[], xlim=(-2.0, 2.1), ylim=(-2.4, 2.0))
    axis.set_title("positions 0 to 5", fontsize=10)
    axis.legend(fontsize=9, frameon=False, ncols=2, loc="lower center", handletextpad=0.1)
    axis.spines[:].set_visible(False)


def scores(axis):
    """Draw the scores of a row of ones as a query at two positions, and as a key at all."""
    length, d = 100, 32
    positions = np.arange(length)
    key, _ = F.rotary(np.ones((length, d)), positions)
    for at, colour in ((20, "C0"), (60, "C2")):
        query, _ = F.rotary(np.ones((1, d)), np.array([at]))
        S, _ = F.attention_scores(query, key)
        axis.plot(positions, S[0], color=colour, label=f"query at {at}")
        axis.axvline(at, 0.0, 0.8, color=colour, ls="--", lw=1.0)
    axis.set_title("scores of a query and a key that are equal", fontsize=10)
    axis.set(xlabel="position of the key", ylabel="score", xlim=(0, length - 1))
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.25 * (high - low))
    axis.legend(fontsize=9, frameon=False, ncols=2, loc="upper center")
