"""Gradient descent and Adam in a valley of two parameters, and learning-rate schedules."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from npformer.optim import constant, cosine, warmup_inverse_sqrt

STEPS = 200


def draw():
    """Return the valley with its losses, and the schedules."""
    return {"valley": valley(), "schedules": schedules()}


def walk(hessian, start, rule, lr):
    """Return the points that a rule visits on the loss theta H theta / 2."""
    theta = {"theta": start.copy()}
    adam = nf.Adam(theta, lr=lr)
    points = [start.copy()]
    for _ in range(STEPS):
        g = hessian @ theta["theta"]
        if rule == "Adam":
            adam.step({"theta": g})
        else:
            theta["theta"] -= lr * g
        points.append(theta["theta"].copy())
    return np.array(points)


def valley():
    """Return the paths in a valley along an axis, and the losses there and in a rotated one."""
    hessian, start = np.diag([1.0, 100.0]), np.array([-4.0, 1.0])
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)  # by 45 degrees
    turned = turn @ hessian @ turn.T
    runs = {
        "gradient descent": (hessian, walk(hessian, start, "descent", 0.0195), "#0072b2", "-"),
        "Adam": (hessian, walk(hessian, start, "Adam", 0.2), "#d55e00", "-"),
        "Adam, turned valley": (turned, walk(turned, turn @ start, "Adam", 0.2), "#009e73", "--"),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.1), width_ratios=[1.25, 1])
    a, b = np.meshgrid(np.linspace(-4.5, 1.0, 120), np.linspace(-1.3, 1.3, 120))
    left.contour(
        a, b, 0.5 * (a**2 + 100.0 * b**2), [1, 4, 9, 20, 40, 70], colors="#bbbbbb", linewidths=0.8
    )
    for name, (curved, points, colour, line) in runs.items():
        if curved is hessian:
            left.plot(*points[:60].T, "o-", ms=2.2, lw=0.9, c=colour, label=name)
        losses = 0.5 * np.einsum("ti,ij,tj->t", points, curved, points)
        right.semilogy(np.maximum(losses, 1e-9), line, c=colour, lw=1.4, label=name)
    left.plot(0.0, 0.0, "*", ms=11, c="black")
    left.set_xlabel("first parameter (curvature 1)")
    left.set_ylabel("second parameter (curvature 100)")
    right.set_xlabel("step")
    right.set_ylabel("loss")
    right.set_ylim(bottom=1e-9, top=1e7)
    right.legend(fontsize=9, frameon=False, loc="upper right")
    return figure


def schedules():
    """Return the factors of the three schedules over 1000 steps."""
    figure, axis = plt.subplots(figsize=(6.0, 2.4))
    steps = np.arange(1, 1001)
    named = {
        "constant()": constant(),
        "warmup_inverse_sqrt(100)": warmup_inverse_sqrt(100),
        "cosine(1000, warmup=100)": cosine(1000, warmup=100),
    }
    for (name, schedule), line in zip(named.items(), ("-", "-", "--"), strict=True):
        axis.plot(steps, [schedule(int(step)) for step in steps], line, label=name)
    axis.set_xlabel("step")
    axis.set_ylabel("factor of lr")
    axis.set_ylim(0.0, 1.1)
    axis.legend(fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
