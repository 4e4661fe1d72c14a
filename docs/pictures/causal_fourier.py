"""Mixing weights: a Fourier matrix, convolutions on two circles, and gates."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from docs.site.colours import SIGNED

LENGTH, FEATURES = 16, 8


def draw():
    """Return four matrices of mixing weights."""
    rng = np.random.default_rng(1)
    angles = 2 * np.pi * np.outer(np.arange(LENGTH), np.arange(LENGTH)) / LENGTH
    kernel = rng.normal(size=LENGTH) * np.exp(-np.arange(LENGTH) / 4)
    mixer = nf.mixers.GatedConvolution(FEATURES, LENGTH, seed=0, dtype="float64")
    gated = mixer.explain(rng.normal(size=(1, LENGTH, FEATURES)), nf.Context())[0, 0]
    shown = (
        ("Fourier: cosines", np.cos(angles)),
        (f"circle of {LENGTH}", on_a_circle(kernel, LENGTH)),
        (f"circle of {2 * LENGTH}, cut", on_a_circle(kernel, 2 * LENGTH)),
        ("with gates", gated),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.1))
    for axis, (title, matrix) in zip(axes, shown, strict=True):
        limit = np.sort(abs(matrix).ravel())[-8]  # a few entries may be much larger
        axis.pcolormesh(matrix, cmap=SIGNED, vmin=-limit, vmax=limit, ec="white", lw=0.3)
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], yticks=[], aspect="equal", xlabel="from")
        axis.invert_yaxis()
        axis.spines[:].set_visible(False)
    axes[0].set_ylabel("to")
    return {"matrices": figure}


def on_a_circle(kernel, n):
    """Return the matrix of a convolution by transforms of size n: one column per impulse."""
    impulses = np.eye(LENGTH)
    products = np.fft.rfft(kernel, n)[:, None] * np.fft.rfft(impulses, n, axis=0)
    return np.fft.irfft(products, n, axis=0)[:LENGTH]
