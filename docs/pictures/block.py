"""The norm of the gradient at each of 24 blocks."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf

DEPTH = 24


def draw():
    """Return one line for each kind of block."""
    figure, axis = plt.subplots(figsize=(6.0, 2.9))
    for name, norms in measured().items():
        axis.semilogy(np.arange(1, DEPTH + 1), norms, "o-", ms=3, label=name)
    axis.set(xlabel="block, from the input", ylabel="gradient, share of its start")
    axis.legend(fontsize=9, frameon=False)
    return {"depth": figure}


def measured():
    """Return the norm of the gradient of the input of each block, over that of the output."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(2, 4, 16, 64))
    found = {}
    for name, norm, residual in (
        ("pre-norm", "pre", True),
        ("post-norm", "post", True),
        ("sublayers alone", "post", False),
    ):
        config = nf.EncoderConfig(
            d_model=64, n_layers=DEPTH, n_heads=4, d_ff=128, max_len=16, norm=norm
        )
        encoder = nf.Encoder(config, seed=0, dtype="float64")
        found[name] = backward(encoder, x, dy, residual)
    return found


def backward(encoder, x, dy, residual):
    """Go through all blocks and back; or through the sublayers alone, without sums and norms."""
    context, gradients = nf.Context(), nf.Gradients(encoder)
    layers = []
    for block in encoder.blocks:
        layers.append([block] if residual else [sublayer for sublayer, _, _ in block.parts()])
    caches = []
    for parts in layers:
        for part in parts:
            x, cache = part.forward(x, context)
            caches.append((part, cache))
    norms, start = [], np.linalg.norm(dy)
    for parts in reversed(layers):
        for _ in parts:
            part, cache = caches.pop()
            dy = part.backward(dy, cache, gradients)
        norms.append(np.linalg.norm(dy) / start)
    return norms[::-1]
