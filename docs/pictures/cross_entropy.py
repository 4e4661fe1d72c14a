"""Logits, probabilities, target and gradient of one sample."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import draw_bars
from npformer import functional as F


def draw():
    """Return four panels of bars."""
    logits = np.array([[0.5, 1.2, 2.1, -1.0]])
    _, cache = F.softmax_cross_entropy(logits, np.array([1]))
    p, _ = F.softmax(logits)
    dlogits = F.softmax_cross_entropy_backward(1.0, cache)
    parts = (
        ("logits z", logits[0], "value"),
        ("p = softmax(z)", p[0], "weight"),
        ("target q", np.eye(4)[1], "weight"),
        ("dz = p - q", dlogits[0], "gradient"),
    )
    figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.3))
    for axis, (title, values, kind) in zip(axes, parts, strict=True):
        draw_bars(axis, values, kind)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("class", fontsize=9)
        axis.set_xticks(np.arange(1, 5))
    return {"classes": figure}
