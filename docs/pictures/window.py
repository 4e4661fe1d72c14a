"""The band of a window, and how many scores are computed as sequences grow."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import WEIGHTS
from npformer.engine.cpu.tiles import Tiling
from npformer.functional.averaging import allowed_pairs

TOKENS, WINDOW, LONG_WINDOW = 12, 4, 128
LENGTHS = [2**n for n in range(7, 15)]


def draw():
    """Return both bands, and the curves."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.6), width_ratios=[1, 1, 1.5])
    for axis, causal, title in (
        (axes[0], False, "on both sides"),
        (axes[1], True, "causal"),
    ):
        band(axis, causal)
        axis.set_title(title, fontsize=10)
    axes[0].set(ylabel="query")
    curves(axes[2])
    return {"tiles": figure}


def band(axis, causal):
    """Draw which keys each query sees."""
    like, lengths = np.zeros(1), (TOKENS, TOKENS)
    seen = allowed_pairs(None, causal, like, lengths, window=WINDOW)
    axis.imshow(np.where(seen, 0.75, 0.0), cmap=WEIGHTS, vmin=0, vmax=1, rasterized=True)
    axis.set(xticks=[], yticks=[], xlabel="key")
    axis.set_xticks(np.arange(TOKENS + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(TOKENS + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="#cccccc", lw=0.5)
    axis.tick_params(which="minor", length=0)


def curves(axis):
    """Draw the scores of a head against the length."""
    pairs = {
        "all pairs": ([n * n for n in LENGTHS], "C1", "-"),
        "causal": ([n * (n + 1) / 2 for n in LENGTHS], "C1", "--"),
        "a window of 128": ([tiled(n) for n in LENGTHS], "C0", "-"),
    }
    for label, (counts, colour, dashes) in pairs.items():
        axis.loglog(LENGTHS, counts, dashes, color=colour, label=label, base=2)
    axis.set(xlabel="length", ylabel="scores that are computed")
    axis.set_xticks([128, 512, 2048, 8192], ["128", "512", "2048", "8192"])
    axis.set_yticks([2**n for n in (14, 20, 26)], ["16 thousand", "1 million", "67 million"])
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=9)


def tiled(length):
    """Return how many scores the tiles of a causal window hold."""
    tiling = Tiling(1, 1, length, True, LONG_WINDOW)
    return sum(
        (queries.stop - queries.start) * (keys.stop - keys.start)
        for _, (queries, keys, *_) in tiling.tiles(tiling.groups)
    )
