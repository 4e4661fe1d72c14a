"""A linear map forward and backward on six tokens, and which positions a convolution reads."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import SIGNED, WEIGHTS
from npformer import functional as F

TOKENS, D_IN, D_OUT = 6, 4, 3


def draw():
    """Return the three matrix products, and the derivatives of one-channel convolutions."""
    return {"products": products(), "reads": reads()}


def products():
    """Draw y = x W, dx = dy W^T and dW = x^T dy; the first token is framed."""
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(TOKENS, D_IN)), rng.normal(size=(D_IN, D_OUT))
    y, cache = F.linear(x, W)
    dy = rng.normal(size=y.shape)
    dx, dW = F.linear_backward(dy, cache)

    rows = (
        (("x", x), ("W", W), ("y = x W", y)),
        (("dy", dy), ("$W^T$", W.T), ("dx = dy $W^T$", dx)),
        (("$x^T$", x.T), ("dy", dy), ("dW = $x^T$ dy", dW)),
    )
    framed = {(0, 0), (0, 2), (1, 0), (1, 2)}  # one row of the left gives one row of the right
    figure, axes = plt.subplots(3, 5, figsize=(7.0, 6.0), width_ratios=[6, 1, 6, 1, 6])
    for i, row in enumerate(rows):
        for sign, text in ((1, "@"), (3, "=")):
            axes[i, sign].axis("off")
            axes[i, sign].text(0.5, 0.5, text, ha="center", va="center", fontsize=14)
        for j, (title, matrix) in enumerate(row):
            matrix_of_numbers(axes[i, 2 * j], matrix)
            axes[i, 2 * j].set_title(title, fontsize=11)
            if (i, j) in framed:
                frame = plt.Rectangle((0, 0), matrix.shape[1], 1, fill=False, lw=2.5, ec="#d55e00")
                axes[i, 2 * j].add_patch(frame).set_clip_on(False)
    return figure


def matrix_of_numbers(axis, matrix):
    """Draw a matrix as coloured cells, all cells of one size, each with its number."""
    n, m = matrix.shape
    axis.pcolormesh(matrix, cmap=SIGNED, vmin=-4.5, vmax=4.5, edgecolor="white", lw=1)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "white" if abs(value) > 3.0 else "#111111"
        number = f"{value:.1f}".replace("-0.0", "0.0")
        axis.text(j + 0.5, i + 0.5, number, ha="center", va="center", fontsize=9, c=colour)
    axis.set(xlim=(m / 2 - 3, m / 2 + 3), ylim=(n / 2 + 3, n / 2 - 3), xticks=[], yticks=[])
    axis.set_aspect("auto")
    axis.spines[:].set_visible(False)


def reads():
    """Draw the derivative of each y_t by each x_s, for kernels of three sizes."""
    figure, axes = plt.subplots(1, 3, figsize=(7.0, 2.9))
    length = 8
    for axis, kernel in zip(axes, (1, 3, 4), strict=True):
        W = np.linspace(1.0, 0.4, kernel)[::-1].reshape(kernel, 1, 1)
        _, cache = F.conv1d(np.zeros((length, length, 1)), W)
        # sample t gets dy = 1 at position t, so its dx is the derivative of y_t
        dx, _ = F.conv1d_backward(np.eye(length)[..., None], cache)
        axis.pcolormesh(dx[..., 0], cmap=WEIGHTS, vmin=0.0, vmax=1.0, edgecolor="white", lw=1)
        axis.set_title(f"kernel of size {kernel}", fontsize=10)
        axis.set(xlabel="position read, s", xticks=np.arange(length) + 0.5, aspect="equal")
        axis.set_xticklabels(range(length), fontsize=9)
        axis.set_yticks(np.arange(length) + 0.5, range(length), fontsize=9)
        axis.invert_yaxis()
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    axes[0].set_ylabel("position written, t")
    return figure
