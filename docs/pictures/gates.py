"""Gates as functions of one number, and what one unit makes of two, with and without a gate."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import SIGNED
from npformer import functional as F

A = np.linspace(-4.0, 4.0, 161)


def draw():
    """Return three panels."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.9), width_ratios=[1.15, 1, 1])
    for name, colour in (("sigmoid", "C2"), ("relu", "C0"), ("gelu", "C1"), ("silu", "C3")):
        gate, _ = getattr(F, name)(A)
        label = {"relu": "ReLU", "gelu": "GELU", "silu": "SiLU"}.get(name, name)
        axes[0].plot(A, gate, color=colour, label=label, lw=1.5)
    axes[0].axhline(0.0, color="#999999", lw=0.8, zorder=0)
    axes[0].axvline(0.0, color="#999999", lw=0.8, zorder=0)
    axes[0].set(xlabel="a", ylim=(-0.6, 4.1))
    axes[0].set_title("gates f(a)", fontsize=10)
    axes[0].legend(frameon=False, fontsize=9, loc="upper left", handlelength=1.2)

    gate, _ = F.silu(A)
    plain = np.tile(gate, (len(A), 1))
    gated = gate * A[:, None]
    levels = np.arange(-15.0, 15.1, 1.0)
    for axis, values, title in (
        (axes[1], plain, "without a gate: SiLU(a)"),
        (axes[2], gated, "with one: SiLU(a) u"),
    ):
        axis.pcolormesh(A, A, values, cmap=SIGNED, vmin=-16, vmax=16, rasterized=True)
        axis.contour(A, A, values, levels=levels, colors="#555555", linewidths=0.6)
        axis.set_title(title, fontsize=10)
        axis.set(xlabel="a", aspect="equal", xticks=[-4, 0, 4], yticks=[-4, 0, 4])
        axis.spines[:].set_visible(False)
    axes[1].set_ylabel("u", rotation=0)
    return {"units": figure}
