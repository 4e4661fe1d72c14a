"""Logits, probabilities, target and gradient of one sample."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F


def draw():
    """Return four panels of bars."""
    logits = np.array([[0.5, 1.2, 2.1, -1.0]])
    _, cache = F.softmax_cross_entropy(logits, np.array([1]))
    p, _ = F.softmax(logits)
    dlogits = F.softmax_cross_entropy_backward(1.0, cache)
    parts = (
        ("logits z", logits[0], "#0072b2"),
        ("p = softmax(z)", p[0], "#009e73"),
        ("target q", np.eye(4)[1], "#999999"),
        ("dz = p - q", dlogits[0], "#d55e00"),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.3))
    for axis, (title, values, colour) in zip(axes, parts, strict=True):
        axis.bar(np.arange(1, 5), values, color=colour)
        axis.axhline(0.0, lw=0.8, c="black")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("class", fontsize=9)
        axis.set_xticks(np.arange(1, 5))
    return {"classes": figure}
