"""Cosines and sines, and a digit through the transform."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from docs.site.colours import SIGNED


def draw():
    """Return C, S, a digit and the real part of its transform."""
    angles = 2 * np.pi * np.outer(np.arange(8), np.arange(8)) / 8
    digit = nf.data.digits().test[0][0].astype("float64")
    mixed, _ = nf.functional.fourier_mixing(digit)
    parts = (
        ("C", np.cos(angles), SIGNED, 1.0),
        ("S", np.sin(angles), SIGNED, 1.0),
        ("X", digit, "gray_r", None),
        ("Re F X F", mixed, SIGNED, np.sort(np.abs(mixed).ravel())[-4]),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.0))
    for axis, (title, matrix, colours, limit) in zip(axes, parts, strict=True):
        low = 0.0 if limit is None else -limit
        axis.pcolormesh(matrix, cmap=colours, vmin=low, vmax=limit, ec="white", lw=0.3)
        axis.set_title(title, fontsize=10)
        axis.invert_yaxis()
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.spines[:].set_visible(False)
    return {"matrices": figure}
