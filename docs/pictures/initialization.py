"""The size of activations and gradients by depth, for four variances of the weights."""

import matplotlib.pyplot as plt
import numpy as np

from npformer import functional as F
from npformer.core import initializers

DEPTH, WIDTH, SEEDS = 20, 64, 20

WAYS = {
    "twice He's std": lambda rng, shape: 2.0 * initializers.he_normal(rng, shape),
    "He": initializers.he_normal,
    "Xavier": initializers.xavier_normal,
    "N(0, 0.02²)": initializers.normal(0.02),
}


def sizes(init, seed):
    """Return the root mean squares of activations, and of gradients, at 0 to DEPTH layers."""
    rng = np.random.default_rng(seed)
    a, caches = rng.normal(size=(32, WIDTH)), []
    forward = [a]
    for _ in range(DEPTH):
        u, linear_cache = F.linear(a, init(rng, (WIDTH, WIDTH)))
        a, relu_cache = F.relu(u)
        caches.append((linear_cache, relu_cache))
        forward.append(a)
    backward = [rng.normal(size=a.shape)]
    for linear_cache, relu_cache in reversed(caches):
        du = F.relu_backward(backward[-1], relu_cache)
        backward.append(F.linear_backward(du, linear_cache)[0])
    return [[np.sqrt((a * a).mean()) for a in arrays] for arrays in (forward, backward[::-1])]


def draw():
    """Return the picture of both ways."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0), sharey=True)
    layers = np.arange(DEPTH + 1)
    for name, init in WAYS.items():
        of_seeds = np.array([sizes(init, seed) for seed in range(SEEDS)])
        for axis, found in zip(axes, of_seeds.swapaxes(0, 1), strict=True):
            axis.semilogy(layers, np.median(found, axis=0), label=name)
            axis.fill_between(layers, *np.quantile(found, (0, 1), axis=0), alpha=0.2, lw=0)
    for axis, title in zip(axes, ("activations, forward", "gradients, backward"), strict=True):
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("layer")
        axis.set_xticks(range(0, DEPTH + 1, 5))
        axis.set_ylim(1e-9, 1e9)
        axis.axhline(1.0, lw=0.8, c="black", zorder=0)
    axes[0].set_ylabel("root of the mean square")
    axes[0].legend(fontsize=9, frameon=False, loc="upper left")
    axes[1].annotate("", (2, 3e-8), (8, 3e-8), arrowprops={"arrowstyle": "->"})
    return {"depth": figure}
