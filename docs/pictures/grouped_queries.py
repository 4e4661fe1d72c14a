"""Heads of queries and the heads of keys and values that they read, and how large a state is."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf

HEADS = 8
KEPT = {8: "#d55e00", 2: "#0072b2", 1: "#009e73"}
NAMED = {8: "a head each", 2: "grouped queries", 1: "multi-query"}


def draw():
    """Return the three schemes, and the bytes of a state for each of them."""
    figure = plt.figure(figsize=(7.2, 3.2))
    left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
    for axis, (kept, colour) in zip(left.subplots(3, 1), KEPT.items(), strict=True):
        scheme(axis, kept, colour)
    axis = right.subplots()
    tokens = np.arange(1, 513)
    for kept, colour in KEPT.items():
        config = nf.EncoderConfig(
            d_model=64, n_layers=4, n_heads=HEADS, max_len=512, causal=True, n_kv_heads=kept
        )
        model = nf.LanguageModel(config, vocab_size=8, seed=0)
        size = [model.state_bytes(int(n)) / 1024 for n in tokens]
        axis.plot(tokens, size, color=colour)
        axis.text(520, size[-1], str(kept), va="center", fontsize=9, color=colour)
    axis.set(xlabel="tokens", ylabel="KiB of a state", xlim=(0, 560), ylim=(0, None))
    return {"heads": figure}


def scheme(axis, kept, colour):
    """Draw the heads of queries above, and those of keys and values below."""
    group = HEADS // kept
    for head in range(HEADS):
        read = (head // group + 0.5) * group - 0.5
        axis.plot([head, read], [1.0, 0.0], color="#999999", lw=0.9, zorder=1)
        axis.plot(head, 1.0, "o", ms=8, color="white", mec="#555555", zorder=2)
        axis.plot(read, 0.0, "s", ms=8, color=colour, zorder=2)
    axis.set(xlim=(-0.6, HEADS - 0.4), ylim=(-0.45, 1.45), xticks=[], yticks=[])
    axis.set_title(f"{kept}: {NAMED[kept]}", fontsize=9, pad=2)
    axis.spines[:].set_visible(False)
