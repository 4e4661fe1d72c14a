"""Gradient descent and Adam in a narrow valley, and two schedules."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf

CURVES = np.array([1.0, 50.0])  # along and across the valley
START = np.array([-9.0, 1.6])
STEPS = 60


def draw():
    """Return the valley and the schedules."""
    return {"valley": valley(), "schedules": schedules()}


def paths():
    """Return the points that both optimizers pass."""
    plain = [START]
    for _ in range(STEPS):
        plain.append(plain[-1] - 0.036 * CURVES * plain[-1])  # above 2 / 50 it diverges
    parameters = {"w": START.copy()}
    optimizer, adam = nf.Adam(parameters, lr=0.4, betas=(0.9, 0.999)), [START]
    for _ in range(STEPS):
        optimizer.step({"w": CURVES * parameters["w"]})
        adam.append(parameters["w"].copy())
    return {"gradient descent": np.array(plain), "Adam": np.array(adam)}


def valley():
    """Draw the paths on the loss, and the distance to the bottom over the steps."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), width_ratios=[1.7, 1])
    a, b = np.meshgrid(np.linspace(-10, 6, 200), np.linspace(-2.2, 2.2, 200))
    left.contour(a, b, CURVES[0] * a**2 + CURVES[1] * b**2, levels=10, colors="#cccccc")
    for name, points in paths().items():
        left.plot(*points.T, "o-", ms=2.5, lw=1.2, label=name)
        right.semilogy(np.linalg.norm(points, axis=1), label=name)
    left.plot(0, 0, "k+", ms=10)
    left.set(xlabel="along", ylabel="across")
    left.legend(fontsize=9, frameon=False, loc="lower right")
    right.set(xlabel="step", ylabel="distance to the bottom")
    return figure


def schedules():
    """Draw two schedules over 1000 steps."""
    figure, axis = plt.subplots(figsize=(5.2, 2.3))
    steps = np.arange(1, 1001)
    kinds = {
        "cosine": nf.optim.cosine(1000, warmup=100),
        "inverse square root": nf.optim.warmup_inverse_sqrt(100),
    }
    for name, schedule in kinds.items():
        axis.plot(steps, [schedule(int(step)) for step in steps], label=name)
    axis.set(xlabel="step", ylabel="factor", ylim=(0, 1.1))
    axis.legend(fontsize=9, frameon=False)
    return figure
