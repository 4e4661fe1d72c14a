"""The arrays of attention forward and backward, and how heads are split and merged."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import LETTERS, SIGNED, WEIGHTS, say_scale
from npformer import functional as F

FULL = 2.5


def draw():
    """Return the picture of all arrays, and that of the heads."""
    return {"arrays": arrays(), "heads": heads()}


def arrays():
    """Draw Q, K, V, S, A, Y and their gradients for six tokens."""
    rng = np.random.default_rng(5)
    query, key, value = rng.normal(size=(3, 6, 3))
    scores, scores_cache = F.attention_scores(query, key)
    weights, _ = F.softmax(scores)
    y, average_cache = F.average(scores, value)
    dy = rng.normal(size=y.shape)
    dscores, dvalue = F.average_backward(dy, average_cache)
    dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
    dshares = dy @ value.T
    rows = (
        (("Q", query), ("K", key), ("S", scores), ("A", weights), ("V", value), ("Y", y)),
        (
            *(("dQ", dquery), ("dK", dkey), ("dS", dscores)),
            *(("dA", dshares), ("dV", dvalue), ("dY", dy)),
        ),
    )
    figure, axes = plt.subplots(2, 6, figsize=(7.2, 3.1), width_ratios=[3, 3, 6, 6, 3, 3])
    for line, row in zip(axes, rows, strict=True):
        for axis, (title, matrix) in zip(line, row, strict=True):
            if title == "A":
                axis.pcolormesh(matrix, cmap=WEIGHTS, vmin=0.0, vmax=1.0, ec="#cccccc", lw=0.8)
            else:
                axis.pcolormesh(matrix, cmap=SIGNED, vmin=-FULL, vmax=FULL, ec="#cccccc", lw=0.8)
            axis.set_title(title, fontsize=11, color=LETTERS.get(title[-1], "black"))
            axis.invert_yaxis()
            axis.set(xticks=[], yticks=[], aspect="equal")
            axis.spines[:].set_visible(False)
    for axis in axes[:, 2]:
        axis.set_xlabel("keys", fontsize=9)
        axis.set_ylabel("queries", fontsize=9)
    say_scale(figure, limit=FULL, weight=1)
    return figure


def heads():
    """Draw a small table before and after splitting, and the result of a reshape alone."""
    x = 10.0 * np.arange(1, 3)[:, None] + np.arange(4.0)
    split = F.split_heads(x[None], 2)[0]
    wrong = x.reshape(2, 2, 2)
    figure, axes = plt.subplots(1, 5, figsize=(7.2, 1.7), width_ratios=[4, 2, 2, 2, 2])
    shown = (
        ("x", x),
        ("head 1", split[0]),
        ("head 2", split[1]),
        ("reshape\nalone: 1", wrong[0]),
        ("reshape\nalone: 2", wrong[1]),
    )
    for axis, (title, matrix) in zip(axes, shown, strict=True):
        for (i, j), number in np.ndenumerate(matrix):
            head = int(number % 10) // 2
            colour = ("#56b4e9", "#e69f00")[head]
            axis.add_patch(plt.Rectangle((j, i), 1, 1, fc=colour, ec="white", lw=2))
            middle = {"ha": "center", "va": "center", "color": "#111111"}
            axis.text(j + 0.5, i + 0.5, f"{number:.0f}", fontsize=11, **middle)
        axis.set(xlim=(0, matrix.shape[1]), ylim=(2, 0), xticks=[], aspect="equal")
        axis.set_yticks([0.5, 1.5], ["token 1", "token 2"] if axis is axes[0] else ["", ""])
        axis.tick_params(length=0)
        axis.set_title(title, fontsize=10)
        axis.spines[:].set_visible(False)
    return figure
