"""Rows before and after RMS norm, beside layer norm, and what its backward pass removes."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F


def draw():
    """Return the picture of points, of one gradient, and of one row."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.9), width_ratios=[1, 1, 1.15])
    points(axes[0])
    gradient(axes[1])
    row(axes[2])
    return {"rows": figure}


def points(axis):
    """Draw rows of two features, and where both norms move them."""
    x = np.array([[2.3, 0.7], [0.5, 0.3], [0.6, 2.1], [-1.9, 1.6], [-0.3, -0.8], [1.0, -2.1]])
    to, _ = F.rms_norm(x, np.ones(2))
    layer, _ = F.layer_norm(x, np.ones(2), np.zeros(2))
    circle(axis)
    axis.plot(*to.T, "o", ms=5, color="C0", label="RMS norm")
    axis.plot(*layer.T, "s", ms=6, color="C1", label="layer norm")
    for before, after in zip(x, to, strict=True):
        arrow(axis, before, after, "C0")
    axis.plot(*x.T, "o", ms=3.5, color="#999999", label="x")
    axis.set_title("rows of two features", fontsize=10)
    axis.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", **NARROW)
    axis.set(xlim=(-2.6, 2.8), ylim=(-3.2, 2.4))


NARROW = {"handlelength": 0.7, "handletextpad": 0.3, "columnspacing": 0.8, "borderpad": 0.0}


def gradient(axis):
    """Draw a gradient g at a point, its component along the row, and r dx."""
    x, g = np.array([[1.5, 0.8]]), np.array([[0.3, 1.4]])
    n, cache = F.rms_norm(x, np.ones(2))
    r = 1.0 / cache[1]
    left = (F.rms_norm_backward(g, cache)[0] * r)[0]
    at, g = n[0], g[0]
    circle(axis)
    axis.plot([0, 1.95 * at[0]], [0, 1.95 * at[1]], ls=":", color="#999999", lw=1.2)
    arrow(axis, at, at + (g - left), "C1")
    arrow(axis, at, at + left, "C2")
    arrow(axis, at, at + g, "#444444")
    axis.plot(*at, "o", ms=5, color="C0")
    for text, tip, shift in (
        ("g", at + g, (0.1, 0.1)),
        ("along the row", at + (g - left), (-0.9, -1.15)),
        ("r dx", at + left, (-0.75, 0.12)),
        ("n", at, (-0.42, -0.12)),
    ):
        axis.text(*(tip + shift), text, fontsize=9)
    axis.set_title("a gradient at one of them", fontsize=10)
    axis.set(xlim=(-1.6, 3.2), ylim=(-1.9, 2.9))


def row(axis):
    """Draw one row of eight features after both norms."""
    d = 8
    x = 3.0 + 2.0 * np.random.default_rng(3).normal(size=d)
    features = np.arange(1, d + 1)
    both = F.rms_norm(x, np.ones(d))[0], F.layer_norm(x, np.ones(d), np.zeros(d))[0]
    for y, name, colour in zip(both, ("RMS norm", "layer norm"), ("C0", "C1"), strict=True):
        axis.plot(features, y, "o-", ms=3.5, color=colour, label=name)
        axis.axhline(y.mean(), ls="--", lw=1.0, color=colour)
    axis.set_title("a row of eight features", fontsize=10)
    axis.set(xlabel="feature", xticks=features, ylim=(-2.4, 2.9))
    axis.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", **NARROW)


def circle(axis):
    """Draw the rows of two features with a root mean square of 1."""
    t = np.linspace(0.0, 2.0 * np.pi, 121)
    axis.plot(2**0.5 * np.cos(t), 2**0.5 * np.sin(t), color="#999999", lw=0.8)
    axis.plot(0, 0, "+", color="#444444", ms=6)
    axis.set(aspect="equal", xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def arrow(axis, begin, end, colour):
    """Draw an arrow between two points."""
    style = {"arrowstyle": "->", "color": colour, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, begin, arrowprops=style)
