"""Training steps of `EncoderDecoder` and torch.nn.Transformer: the same weights, in turn.

PyTorch runs eagerly, with the faster of its two ways to compute Adam. `--only` selects cases by
words in their names.
"""

import argparse
import itertools
import statistics
from dataclasses import dataclass
from functools import partial

import numpy as np

import npformer as nf
from benchmarks.decoders import Recipe, compare, config_of, versions
from benchmarks.jobs import add_options, pending
from benchmarks.results_files import markdown, write
from npformer.core import cores

VOCAB, BATCHES = 1000, 4


@dataclass(frozen=True)
class Case(Recipe):
    """A model for sources and targets of some length, and its batch."""

    d_model: int
    layers: int
    source: int
    target: int
    batch: int
    norm: str = "post"
    tied: bool = False
    padded: bool = False
    dropout: float = 0.0

    peer = "Translator"

    @property
    def name(self):
        """The name for `--only` and the table."""
        words = f"d{self.d_model} layers{self.layers} {self.source}-{self.target} x{self.batch}"
        more = {"tied": self.tied, "padded": self.padded, f"dropout{self.dropout:g}": self.dropout}
        return " ".join((words, self.norm, *(word for word, true in more.items() if true)))

    @property
    def sizes(self):
        """d_model, layers, heads, d_ff."""
        return self.d_model, self.layers, max(4, self.d_model // 32), 4 * self.d_model

    def model(self):
        """Return npformer's model."""
        config = config_of(
            self.sizes,
            max(self.source, self.target),
            activation="relu",
            norm=self.norm,
            dropout=self.dropout,
        )
        return nf.EncoderDecoder(config, VOCAB, VOCAB, tied=self.tied, seed=0)

    def shape(self):
        """Return the arguments of PyTorch's model."""
        return {
            "sizes": self.sizes,
            "max_len": max(self.source, self.target),
            "vocabs": (VOCAB, VOCAB),
            "norm": self.norm,
            "tied": self.tied,
            "rate": self.dropout,
            "scaled": True,
        }

    def batches(self):
        """Return an endless iterator over a few batches."""
        rng = np.random.default_rng(0)
        return itertools.cycle([self._batch(rng) for _ in range(BATCHES)])

    def _batch(self, rng):
        source = rng.integers(3, VOCAB, (self.batch, self.source))
        # One more token, because the last one is only predicted and the first one only read.
        target = rng.integers(3, VOCAB, (self.batch, self.target + 1))
        target[:, 0] = 1
        if self.padded:  # lengths from half to full
            for ids in (source, target):
                whole = ids.shape[1]
                ends = rng.integers(whole // 2, whole + 1, len(ids))
                ids[np.arange(whole) >= ends[:, None]] = 0
        return source, target


CASES = [
    Case(64, 2, 16, 32, 64),
    Case(64, 2, 32, 16, 32, padded=True),
    Case(64, 2, 64, 32, 8, "pre", tied=True),
    Case(64, 4, 16, 32, 32, "pre"),
    Case(64, 4, 32, 64, 64, tied=True, padded=True),
    Case(128, 2, 16, 32, 64, "pre", padded=True),
    Case(128, 2, 32, 16, 8),
    Case(128, 2, 32, 64, 32, tied=True),
    Case(128, 4, 64, 32, 32, "pre", tied=True, padded=True),
    Case(128, 4, 32, 16, 64, dropout=0.1),
    Case(256, 2, 16, 32, 8, tied=True),
    Case(256, 2, 32, 16, 32, "pre", tied=True),
    Case(256, 2, 64, 32, 32, padded=True),
    Case(256, 4, 32, 64, 8, "pre", padded=True),
    Case(256, 4, 16, 32, 32, dropout=0.1),
    Case(256, 4, 32, 16, 8, padded=True),
]


def run(words):
    """Measure the cases, and write the table if all were measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks translating", description=__doc__)
    add_options(parser)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each case")
    parser.add_argument("--threads", type=int, help="for each side; nothing is written")
    chosen = parser.parse_args(words)
    everything = {
        case.name: partial(compare, case, chosen.seconds, chosen.threads) for case in CASES
    }
    figures = {}
    for name, measure in pending(everything, {}, chosen):
        figures[name] = measure()
        print(f"{name}: {in_short(figures[name])}", flush=True)
    if chosen.threads or len(figures) < len(CASES):
        print(verdict(figures), "Not written: only a run of all cases, on all cores, is.", sep="\n")
        return
    write("translating", figures, table(figures), **versions())


def in_short(figure):
    """Return a line about one case."""
    ours, theirs = (figure["ms"][who]["median"] for who in ("npformer", "PyTorch"))
    return (
        f"{ours:.4g} ms, {figure['ratio']['of_medians']:.2f} of PyTorch's {theirs:.4g} ms "
        f"({figure['shared_by']}, {figure['rounds']} rounds, others {figure['others_share']})"
    )


def verdict(figures):
    """Return a sentence about all ratios."""
    ratios = [each["ratio"]["of_medians"] for each in figures.values()]
    return (
        f"npformer / PyTorch, {len(ratios)} training steps: median "
        f"{statistics.median(ratios):.2f}, best {min(ratios):.2f}, worst {max(ratios):.2f}."
    )


def table(figures):
    """Return a sentence about all ratios, a row for each case, and what was done."""
    rows = [
        (name, f"{each['ms']['npformer']['median']:.3g}", f"{each['ratio']['of_medians']:.2f}")
        for name, each in figures.items()
    ]
    made = markdown(("d_model, layers, lengths, batch", "ms", "/ PyTorch"), rows)
    return f"{verdict(figures)}\n\n{made}\n\n{HOW}"


HOW = (
    "A step is forward, loss, backward and Adam, of sources and targets of the lengths named, with "
    f"{VOCAB} tokens, relu, d_ff four times d_model, float32, and begins with the same weights. "
    "Padded: lengths from a half to the whole; tied: one table for source, target and output. "
    "PyTorch is eager torch.nn.Transformer, told of padding only where there is some, with the "
    f"faster of two Adams. Medians, in turn, {cores()} threads each."
)
