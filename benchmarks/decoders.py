"""Models that write, compared with PyTorch: npformer's side, and how both are timed.

Each side runs in its own process (`benchmarks.remote`), and starts with npformer's weights.
"""

import time
from contextlib import contextmanager
from functools import partial

import numpy as np

import npformer as nf
from benchmarks.ours import COPIES
from benchmarks.remote import Remote
from benchmarks.timing import Others, interleave, ratio, significant, summary, timed
from npformer.core import cores
from npformer.engine.team import Team
from npformer.optim import clip_by_global_norm, schedule_of
from npformer.training.evaluation import evaluate

LOSSES, AGREE = 3, 1e-3
"""How many steps' losses are compared before timing, and how far apart they may be."""


class Training:
    """The task of both sides: a model, its batches, and how it is trained.

    A subclass has `peer`, the name of a class in `benchmarks.decoders_peers`, and three methods:
    ``model()`` makes npformer's model, ``shape()`` returns the arguments of the peer's class, and
    ``batches()`` yields pairs of arrays endlessly, the same ones each time.
    """

    lr, betas, weight_decay, no_decay, schedule = 1e-3, (0.9, 0.999), 0.0, (), None
    clip = None
    dropout = 0.0

    def factor(self, step):
        """Return the factor of the learning rate at a step, counted from 1."""
        return schedule_of(self.schedule)(step)


class Ours:
    """npformer's model of a training, and its steps, as in `fit`."""

    def __init__(self, training, threads=None):
        self.clip = training.clip
        self.model = training.model()
        self.adam = nf.Adam(
            self.model.parameters(),
            lr=training.lr,
            betas=training.betas,
            weight_decay=training.weight_decay,
            no_decay=training.no_decay,
            schedule=training.schedule,
        )
        self.batches = training.batches()
        self.team = Team(self.model, workers=threads or "auto", processes=COPIES)
        self.generator = np.random.default_rng(0)

    def step(self):
        """Run one training step and return its loss."""
        batch = self.model.batch(*next(self.batches))
        loss, gradients = self.team.step(batch, generator=self.generator)
        if self.clip is not None:
            clip_by_global_norm(gradients, self.clip)
        self.adam.step(gradients)
        return loss

    def weights(self):
        """Return copies of all weights, by name."""
        return {name: np.array(value) for name, value in self.model.parameters().items()}

    def losses(self, n):
        """Run n training steps and return their losses."""
        return [float(self.step()) for _ in range(n)]

    def turn(self, n):
        """Return the seconds per step, over n steps after an untimed one."""
        return timed(self.step, n)

    def train(self, n):
        """Run exactly n steps, and return the seconds per step."""
        began = time.perf_counter()
        self.losses(n)
        return (time.perf_counter() - began) / n

    def loss(self, x, y):
        """Return the mean loss of some samples at evaluation."""
        return evaluate(self.model, (x, y)).loss

    def written(self, source, n):
        """Return the targets of up to n tokens that the model writes."""
        return self.model.generate(source, n)

    def shared_by(self):
        """Return who computed the last step."""
        return self.team.shared_by


@contextmanager
def both(training, threads=None):
    """Yield both sides, with the same weights; `threads` is for each side, default: all cores."""
    with (
        Remote("benchmarks.decoders", "Ours", training, threads) as ours,
        Remote("benchmarks.decoders_peers", "Theirs", training, threads or cores()) as theirs,
    ):
        theirs.call("load", ours.call("weights"))
        yield ours, theirs


def compare(training, seconds, threads=None):
    """Check that both sides take the same steps, and time them in turn."""
    with both(training, threads) as (ours, theirs):
        adam = theirs.call("choose")
        if training.dropout == 0.0:
            check_losses(ours.call("losses", LOSSES), theirs.call("losses", LOSSES))
        turns = {"npformer": partial(ours.call, "turn"), "PyTorch": partial(theirs.call, "turn")}
        with Others(ours.pid, theirs.pid) as others:
            taken = interleave(turns, seconds)
        return {
            "ms": {who: summary(each) for who, each in taken.items()},
            "ratio": ratio(taken["npformer"], taken["PyTorch"]),
            "rounds": len(taken["npformer"]),
            "adam": adam,
            "shared_by": ours.call("shared_by"),
            "others_share": others.share,
        }


def check_losses(ours, theirs):
    """Raise an error unless the first steps of both sides have the same losses."""
    apart = np.abs(np.array(theirs) / np.array(ours) - 1.0).max()
    if not apart <= AGREE:
        raise ValueError(f"losses are {ours}, and PyTorch's {theirs}; expected the same")


def train_both(ours, theirs, steps, turn):
    """Train both sides, a few steps in turn; return their seconds per step, by turn."""
    taken = {"npformer": [], "PyTorch": []}
    for done in range(0, steps, turn):
        n = min(turn, steps - done)
        taken["npformer"].append(ours.call("train", n))
        taken["PyTorch"].append(theirs.call("train", n))
    return taken


def versions():
    """Return what the figures depend on besides the machine."""
    from importlib.metadata import version

    return {"torch": version("torch"), "threads": cores()}


def ratio_of(taken):
    """Return ours / theirs of the median step of two sides."""
    return significant(ratio(taken["npformer"], taken["PyTorch"])["of_medians"])
