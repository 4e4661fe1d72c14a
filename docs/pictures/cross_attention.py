"""Weights under a causal mask, aligned at either end, and over a memory with padding."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import WEIGHTS
from npformer import functional as F


def draw():
    """Return the weights of four calls of attention side by side."""
    rng = np.random.default_rng(3)
    query, key = rng.normal(size=(2, 6, 4))
    memory = rng.normal(size=(6, 4))
    scores, to_memory = (F.attention_scores(query, each)[0] for each in (key, memory))
    triangle = np.tri(6, dtype=bool)
    padding = np.broadcast_to(np.arange(6) < 4, (6, 6))
    shown = (  # title, scores, what is seen, the first query
        ("causal mask", scores, triangle, 0),
        ("begin = 4", scores[4:], triangle[4:], 4),
        ("begin = 0: wrong", scores[4:], triangle[:2], 4),
        ("padded memory", to_memory, padding, 0),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.4))
    for axis, (title, of_pairs, allowed, first) in zip(axes, shown, strict=True):
        weights, _ = F.softmax(of_pairs, mask=allowed)
        seen = np.ma.masked_where(~allowed, weights)
        rows = np.arange(first, 7)
        look = {"cmap": WEIGHTS, "vmin": 0.0, "vmax": 1.0, "ec": "white", "lw": 0.8}
        axis.pcolormesh(np.arange(7), rows, seen, **look)
        axis.add_patch(plt.Rectangle((0, first), 6, 6 - first, fill=False, ec="#bbbbbb", lw=0.8))
        axis.set_title(title, fontsize=10)
        axis.set(xticks=np.arange(6) + 0.5, xticklabels=range(6), aspect="equal", ylim=(6.1, -0.1))
        axis.set_yticks(rows[:-1] + 0.5, rows[:-1])
        axis.tick_params(length=0, labelsize=8)
        axis.set_xlabel("tokens of the memory" if axis is axes[3] else "keys", fontsize=9)
        axis.spines[:].set_visible(False)
    axes[0].set_ylabel("queries", fontsize=9)
    return {"masks": figure}
