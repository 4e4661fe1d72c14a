"""A distribution of the next token, and what each option leaves of it for drawing."""

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import WEIGHT
from npformer.training.generation.choosing import Choice


def draw():
    """Return the probabilities of eight tokens with five options, side by side."""
    logits = np.log([[0.34, 0.22, 0.15, 0.11, 0.08, 0.05, 0.03, 0.02]])
    shown = (
        ("as it is", {}),
        ("temperature .5", {"temperature": 0.5}),
        ("temperature 2", {"temperature": 2.0}),
        ("top_k = 3", {"top_k": 3}),
        ("top_p = .8", {"top_p": 0.8}),
    )
    figure, axes = plt.subplots(1, 5, figsize=(7.2, 1.9), sharey=True)
    given = Choice().probabilities(logits)[0]
    for axis, (title, options) in zip(axes, shown, strict=True):
        p = Choice(**options).probabilities(logits)[0]
        axis.bar(range(8), p, color=WEIGHT)
        axis.step(np.arange(9) - 0.5, [*given, given[-1]], where="post", color="#bbbbbb", lw=1.0)
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], xlabel="tokens", ylim=(0.0, 0.6))
    axes[0].set_ylabel("probability")
    return {"sampling": figure}
