"""nanoGPT's recipe for a CPU, in npformer and PyTorch: the same weights and batches, in turn.

FILE is a text, plain or .gz: the plays of Shakespeare that char-rnn and nanoGPT train on, 1,115,394
characters, which nanoGPT's data/shakespeare_char/prepare.py downloads. It is not included here.
"""

import gzip
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.decoders import (
    Recipe,
    config_of,
    parser_of,
    ratio_of,
    started,
    train_both,
    versions,
)
from benchmarks.results_files import markdown, write
from benchmarks.timing import Others, significant, summary
from npformer.core import cores
from npformer.optim import NORMS_AND_BIASES

SIZES = 128, 4, 4, 512
"""d_model, layers, heads, d_ff."""

LENGTH, BATCH, STEPS, WARM_UP = 64, 12, 2000, 100
TRAINED = 0.9
"""The share of the text, from its start, to train on; the rest is used only at the end."""

TURN = 20
"""Steps of one side before the other side's turn."""

LOSS_APART, RATIO = 0.02, 1.05
"""How many nats worse than PyTorch's the loss may be, and how much longer a step may take."""


@dataclass(frozen=True)
class Characters(Recipe):
    """A training on characters, given as numbers."""

    ids: np.ndarray
    vocab: int
    steps: int
    seed: int = 0

    peer = "GPT"
    betas, weight_decay, no_decay, clip = (0.9, 0.99), 0.1, NORMS_AND_BIASES, 1.0

    @property
    def schedule(self):
        """Return the factor: a warm-up, then a cosine to a tenth."""
        return f"cosine(total={self.steps}, warmup={min(WARM_UP, self.steps - 1)}, final=0.1)"

    def model(self):
        """Return npformer's model."""
        config = config_of(
            SIZES,
            LENGTH,
            norm="pre",
            causal=True,
            positions="learned",
            scale_embeddings=False,
            initializer="normal(std=0.02)",
        )
        return nf.LanguageModel(config, self.vocab, seed=self.seed)

    def shape(self):
        """Return the arguments of PyTorch's model."""
        return {"sizes": SIZES, "max_len": LENGTH, "vocab": self.vocab, "learned": True}

    def batches(self):
        """Yield windows that start anywhere, and the same windows shifted by one character."""
        rng = np.random.default_rng(self.seed)
        while True:
            starts = rng.integers(0, len(self.ids) - LENGTH, BATCH)
            window = self.ids[starts[:, None] + np.arange(LENGTH + 1)]
            yield window[:, :-1].copy(), window[:, 1:].copy()


def read(file):
    """Return a text as numbers, and its number of distinct characters."""
    path = Path(file)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    characters, ids = np.unique(list(raw.decode()), return_inverse=True)
    return ids.astype("int64"), len(characters)


def windows(ids):
    """Return a text's windows without overlap, less a partial one, and their next characters."""
    n = (len(ids) - 1) // LENGTH
    return (ids[i : i + n * LENGTH].reshape(n, LENGTH) for i in (0, 1))


def run(words):
    """Train both, and write the losses that they reach and how long a step takes."""
    chosen = parser_of("shakespeare", __doc__, STEPS, "nanoGPT's input.txt").parse_args(words)
    ids, vocab = read(chosen.file)
    cut = int(TRAINED * len(ids))
    x, y = windows(ids[cut:])
    recipe = Characters(ids[:cut], vocab, chosen.steps)
    with started(recipe, chosen.threads) as (ours, theirs):
        with Others(ours.pid, theirs.pid) as others:
            taken = train_both(ours, theirs, chosen.steps, TURN)
        loss = {"npformer": ours.call("loss", x, y), "PyTorch": theirs.call("loss", x, y)}
        figures = {
            "characters": len(ids),
            "parameters": sum(w.size for w in ours.call("weights").values()),
            "steps": chosen.steps,
            "loss": {who: significant(nats) for who, nats in loss.items()},
            "ms": {who: summary(seconds) for who, seconds in taken.items()},
            "ratio": ratio_of(taken),
            "shared_by": ours.call("shared_by"),
            "others_share": others.share,
        }
    print(figures)
    if chosen.threads or chosen.steps < STEPS:
        print("Not written: only a run with all steps, on all cores, is.")
        return
    write("shakespeare", figures, table(figures), **versions())


def table(figures):
    """Return a row for each side, whether both bounds hold, and what was done."""
    rows = [
        (who, f"{nats:.3f}", f"{figures['ms'][who]['median']:.1f}")
        for who, nats in figures["loss"].items()
    ]
    made = markdown(("", "validation, nats a character", "step, ms"), rows)
    return f"{made}\n\n{verdict(figures)}\n\n{HOW}"


def verdict(figures):
    """Say whether both bounds hold."""
    apart = figures["loss"]["npformer"] - figures["loss"]["PyTorch"]
    ratio = figures["ratio"]
    good = apart <= LOSS_APART and ratio <= RATIO and math.isfinite(apart)
    return (
        f"npformer's loss is {apart:+.3f} nats beside PyTorch's (at most +{LOSS_APART} is asked "
        f"for), its step takes {ratio:.2f} times as long (at most {RATIO}): "
        f"{'both hold' if good else 'NOT BOTH HOLD'}."
    )


HOW = (
    f"{STEPS} steps of {BATCH} windows of {LENGTH} characters from the first 90 % of the text; 4 "
    "layers, 4 heads, d_model 128, pre-norm, gelu, learned positional encoding, output tied to the "
    "embedding, no dropout; AdamW 0.9, 0.99, weight decay 0.1, lr 0.001 after 100 steps, cosine to "
    "a tenth, gradients clipped at 1. Loss: all of the last 10 %, in windows that do not overlap. "
    "PyTorch is eager, with fused attention and fused AdamW, and begins with the same weights. "
    f"{TURN} steps in turn, medians, {cores()} threads each."
)
