"""The sinusoidal positional encoding and its dot products."""

import matplotlib.pyplot as plt

import npformer as nf
from docs.site.colours import SIGNED


def draw():
    """Return both tables side by side."""
    table = nf.layers.Positions(60, 32, seed=0, dtype="float64").table.value
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), width_ratios=[1, 1])
    shown = axes[0].pcolormesh(table, cmap=SIGNED, vmin=-1, vmax=1, rasterized=True)
    figure.colorbar(shown, ax=axes[0], ticks=[-1, 0, 1])
    axes[0].set(xlabel="feature", ylabel="position")
    products = axes[1].pcolormesh(table @ table.T, cmap=SIGNED, vmin=-16, vmax=16, rasterized=True)
    figure.colorbar(products, ax=axes[1])
    axes[1].set(xlabel="position", aspect="equal")
    for axis in axes:
        axis.invert_yaxis()
        axis.spines[:].set_visible(False)
    return {"positions": figure}
