"""Activations, their derivatives, and the difference between GELU's two forms."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F

X = np.linspace(-4.0, 4.0, 801)


def curve(forward, backward, **options):
    """Return y, and the derivative, which is dx for dy = 1."""
    y, cache = forward(X, **options)
    return y, backward(np.ones_like(X), cache)


def draw():
    """Return four panels."""
    relu = curve(F.relu, F.relu_backward)
    gelu = curve(F.gelu, F.gelu_backward)
    by_tanh = curve(F.gelu, F.gelu_backward, approximate="tanh")
    sigmoid = curve(F.sigmoid, F.sigmoid_backward)
    tanh = curve(F.tanh, F.tanh_backward)

    figure, axes = plt.subplots(2, 2, figsize=(7.0, 5.2), sharex=True)
    (values, slopes), (bounded, apart) = axes
    flat = X < 1e-9
    for axis, k in ((values, 0), (slopes, 1)):
        axis.plot(X[flat], relu[k][flat], color="C0", label="ReLU")
        axis.plot(X[~flat], relu[k][~flat], color="C0")  # the derivative jumps, so no line across
        axis.plot(X, gelu[k], color="C1", label="GELU")
    bounded.plot(X, sigmoid[0], color="C2", label="sigmoid")
    bounded.plot(X, sigmoid[1], color="C2", ls="--", label="its derivative")
    bounded.plot(X, tanh[0], color="C3", label="tanh")
    bounded.plot(X, tanh[1], color="C3", ls="--", label="its derivative")
    apart.plot(X, 1e3 * (by_tanh[0] - gelu[0]), color="C1", label="value")
    apart.plot(X, 1e3 * (by_tanh[1] - gelu[1]), color="C1", ls="--", label="derivative")

    slopes.plot([0.0], F.relu_backward(np.ones(1), F.relu(np.zeros(1))[1]), "o", ms=5, color="C0")

    titles = "y", "derivative", "bounded activations", "GELU: tanh form - exact form"
    for axis, title in zip(axes.flat, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.axhline(0.0, color="#999999", lw=0.8, zorder=0)
        axis.axvline(0.0, color="#999999", lw=0.8, zorder=0)
    values.legend(frameon=False)
    slopes.legend(frameon=False)
    apart.set_ylabel("thousandths")
    apart.legend(frameon=False, loc="lower right", fontsize=9)
    bounded.legend(frameon=False, loc="lower right", fontsize=9)
    for axis in (bounded, apart):
        axis.set_xlabel("x")
    return {"curves": figure}
