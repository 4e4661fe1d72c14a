"""The error of three ways to compute a derivative, over the step, in float64 and float32."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F

ROWS = 200
"""Rows whose root mean square error is drawn: the error of a single row jumps up and down."""


def softmax_loss(x, v):
    """Return sum(v * softmax(x)) of each row, for real or complex numbers."""
    e = np.exp(x)
    return (v * (e / e.sum(axis=-1, keepdims=True))).sum(axis=-1)


def one_sided(x, u, v, h):
    """Return (L(x + h u) - L(x)) / h."""
    return (softmax_loss(x + h * u, v) - softmax_loss(x, v)) / h


def central(x, u, v, h):
    """Return (L(x + h u) - L(x - h u)) / 2 h."""
    return (softmax_loss(x + h * u, v) - softmax_loss(x - h * u, v)) / (2 * h)


def complex_step(x, u, v, h):
    """Return Im L(x + i h u) / h."""
    return softmax_loss(x + 1j * h * u, v).imag / h


def errors(way, dtype, steps):
    """Return the root of the mean squared error, for each step."""
    rng = np.random.default_rng(0)
    x, v = (rng.normal(size=(ROWS, 6)).astype("float32").astype("float64") for _ in range(2))
    u = np.zeros((ROWS, 6))
    u[:, 0] = 1.0
    _, cache = F.softmax(x)
    exact = F.softmax_backward(v, cache)[:, 0]
    x, u, v = (a.astype(dtype) for a in (x, u, v))
    found = [way(x, u, v, x.dtype.type(h)) for h in steps]
    wrong = np.array([np.sqrt(np.mean((each - exact) ** 2)) for each in found])
    return np.maximum(wrong, 1e-18)


def draw():
    """Return the plot."""
    figure, axis = plt.subplots(figsize=(7.0, 4.4))
    fine, coarse = np.logspace(-16, 0, 129), np.logspace(-7.5, 0, 61)
    lines = (
        (one_sided, "float32", coarse, "C1", "--", "one-sided, float32"),
        (central, "float32", coarse, "C1", "-", "central, float32"),
        (one_sided, "float64", fine, "C0", "--", "one-sided, float64"),
        (central, "float64", fine, "C0", "-", "central, float64"),
        (complex_step, "float64", fine, "C2", "-", "complex step, float64"),
    )
    for way, dtype, steps, colour, dashes, label in lines:
        axis.loglog(steps, errors(way, dtype, steps), color=colour, ls=dashes, label=label)
    step = np.finfo("float64").eps ** (1 / 3)
    axis.axvline(step, color="#666666", lw=0.9, ls=":")
    axis.text(step * 0.8, 3e-18, "gradcheck's step", color="#444444", fontsize=9, ha="right")
    for x, y, text in (
        (4e-12, 4e-7, "$\\epsilon / h$"),
        (7e-6, 4e-6, "$h$"),
        (8e-5, 1e-8, "$h^2$"),
    ):
        axis.text(x, y, text, color="C0", fontsize=11)
    axis.set(xlabel="step h", ylabel="error of the derivative", ylim=(1e-18, 10))
    axis.legend(frameon=False, fontsize=9, loc="lower right")
    return {"steps": figure}
