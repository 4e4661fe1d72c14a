"""A computation graph with its numbers: forward above each arrow, backward below."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

from npformer import functional as F

FORWARD, BACKWARD, INK = "#0072b2", "#d55e00", "#444444"


def numbers():
    """Return the values of y = x + relu(w x + b) and of its loss, and all gradients."""
    x, w, b, t = (np.array([[v]]) for v in (1.5, 2.0, -1.0, 2.0))
    z, linear_cache = F.linear(x, w, b[0])
    h, relu_cache = F.relu(z)
    y = x + h
    loss, loss_cache = F.mean_squared_error(y, t)

    dy = F.mean_squared_error_backward(1.0, loss_cache)
    dz = F.relu_backward(dy, relu_cache)
    dx_through, dw, db = F.linear_backward(dz, linear_cache)
    values = {"x": x, "w": w, "b": b, "z": z, "h": h, "y": y, "t": t, "L": loss}
    gradients = {"direct": dy, "through": dx_through, "x": dy + dx_through, "w": dw, "b": db}
    gradients |= {"z": dz, "h": dy, "y": dy, "L": np.ones(())}
    return [{name: v.item() for name, v in group.items()} for group in (values, gradients)]


FUNCTIONS = {  # text, middle, half of the width
    "linear": ("linear\nz = x w + b", 182, 44),
    "relu": ("ReLU\nh = max(0, z)", 330, 50),
    "add": ("add\ny = x + h", 466, 37),
    "error": ("error\n$L = (y - t)^2$", 600, 45),
}
LINE = 185
"""The height of the functions, counted from the top."""


def draw():
    """Return the graph."""
    v, g = numbers()
    figure, axis = plt.subplots(figsize=(7.4, 3.3), layout=None)
    axis.set_position([0, 0, 1, 1])
    axis.set(xlim=(0, 740), ylim=(330, 0))
    axis.axis("off")

    for text, x, half in FUNCTIONS.values():
        shape = {"boxstyle": "round,pad=0,rounding_size=6", "fc": "#f2f2f2", "ec": INK}
        axis.add_patch(FancyBboxPatch((x - half, LINE - 24), 2 * half, 48, **shape))
        axis.text(x, LINE, text, ha="center", va="center", fontsize=9)
    for name, x, y in (("x", 42, 110), ("w", 42, 205), ("b", 42, 285), ("t", 600, 285)):
        source(axis, x, y, name, v[name], g.get(name))

    arrow(axis, (80, 116), (138, 168))
    arrow(axis, (80, 203), (138, 190))
    arrow(axis, (80, 280), (145, 209))
    arrow(axis, (600, 262), (600, 209))
    for name, left, right in (("z", 226, 280), ("h", 380, 429), ("y", 503, 555), ("L", 645, 732)):
        arrow(axis, (left, LINE), (right, LINE))
        value(axis, (left + right) / 2, name, v[name], g[name])
    # the second use of x, past the linear map
    arrow(axis, (80, 106), (466, 161), connectionstyle="angle,angleA=0,angleB=90,rad=20")
    axis.text(270, 103, "x once more", color=FORWARD, ha="center", va="bottom")
    gradient(axis, 270, 110, f"{g['direct']:g}")
    gradient(axis, 96, 142, f"{g['through']:g}")
    gradient(axis, 42, 60, f"{g['direct']:g} + {g['through']:g} = {g['x']:g}")
    axis.text(12, 22, "blue: values, from left to right", color=FORWARD, va="center")
    axis.text(380, 22, "orange: gradients, from right to left", color=BACKWARD, va="center")
    return {"graph": figure}


def source(axis, x, y, name, number, slope):
    """Write the value of an input or a parameter, and its gradient below."""
    axis.text(x, y - 3, f"{name} = {number:g}", color=FORWARD, ha="center", va="bottom")
    if slope is None:
        axis.text(x, y + 3, "(given)", color=INK, ha="center", va="top")
    else:
        gradient(axis, x, y + 3, f"d{name} = {slope:g}")


def value(axis, x, name, number, slope):
    """Write a value above an arrow, and its gradient below."""
    axis.text(x, LINE - 30, f"{name} = {number:g}", color=FORWARD, ha="center", va="bottom")
    gradient(axis, x, LINE + 30, f"d{name} = {slope:g}")


def gradient(axis, x, y, text):
    """Write a gradient."""
    axis.text(x, y, text, color=BACKWARD, ha="center", va="top", weight="bold")


def arrow(axis, start, end, **style):
    """Draw an arrow of the forward pass."""
    props = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0, "lw": 1.2}
    axis.annotate("", end, start, arrowprops=props | style)
