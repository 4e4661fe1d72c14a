"""Models that write, compared with PyTorch: npformer's side, and how both are timed."""

import argparse
from functools import partial
from importlib.metadata import version
from pathlib import Path

import npformer as nf
from benchmarks import ours
from benchmarks.sides import LOSSES, both, check_losses, timing
from benchmarks.timing import ratio, significant
from npformer.core import cores
from npformer.optim import schedule_of
from npformer.training.evaluation import evaluate


class Recipe:
    """The task of both sides: a model, its batches, and how it is trained.

    A subclass has `peer`, the name of a class in `benchmarks.peers.decoders`, and three methods:
    ``model()`` makes npformer's model, ``shape()`` returns the arguments of the peer's class, and
    ``batches()`` yields pairs of arrays endlessly, the same ones each time.
    """

    lr, betas, weight_decay, no_decay, schedule = 1e-3, (0.9, 0.999), 0.0, (), None
    clip = None
    dropout = 0.0

    def factor(self, step):
        """Return the factor of the learning rate at a step, counted from 1."""
        return schedule_of(self.schedule)(step)


def config_of(sizes, max_len, **settings):
    """Return a configuration with d_model, layers, heads and d_ff in that order."""
    named = dict(zip(("d_model", "n_layers", "n_heads", "d_ff"), sizes, strict=True))
    return nf.EncoderConfig(**named, max_len=max_len, **settings)


class Ours(ours.Training):
    """npformer's model of a recipe, and its steps."""

    def __init__(self, recipe, threads=None):
        model = recipe.model()
        adam = nf.Adam(
            model.parameters(),
            lr=recipe.lr,
            betas=recipe.betas,
            weight_decay=recipe.weight_decay,
            no_decay=recipe.no_decay,
            schedule=recipe.schedule,
        )
        super().__init__(model, adam, recipe.batches(), threads or "auto", clip=recipe.clip)

    def loss(self, x, y):
        """Return the mean loss of some samples at evaluation."""
        return evaluate(self.model, (x, y)).loss

    def written(self, source, n):
        """Return the targets of up to n tokens that the model writes."""
        return self.model.generate(source, n)

    def shared_by(self):
        """Return who computed the last step."""
        return self.team.shared_by


def started(recipe, threads=None):
    """Start both sides; `threads` is for each of them, default: all cores."""
    theirs = "benchmarks.peers.decoders", "Theirs", recipe, threads or cores()
    return both(("benchmarks.decoders", "Ours", recipe, threads), theirs)


def compare(recipe, seconds, threads=None):
    """Check that both sides take the same steps, and time them in turn."""
    with started(recipe, threads) as (ours, theirs):
        adam = theirs.call("choose")
        if recipe.dropout == 0.0:
            check_losses(ours.call("losses", LOSSES), theirs.call("losses", LOSSES))
        turns = {"npformer": partial(ours.call, "turn"), "PyTorch": partial(theirs.call, "turn")}
        figures = timing(turns, (ours.pid, theirs.pid), seconds=seconds)
        figures["ratio"] = figures["ratio"]["PyTorch"]
        return figures | {"adam": adam, "shared_by": ours.call("shared_by")}


def parser_of(name, doc, steps, example):
    """Return a parser of the options of a benchmark that trains both sides on a file."""

    def existing(file):
        if not Path(file).is_file():
            raise argparse.ArgumentTypeError(f"there is no file {file}; expected {example}")
        return file

    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", type=existing)
    parser.add_argument("--steps", type=int, default=steps, help="with fewer, nothing is written")
    parser.add_argument("--threads", type=int, help="for each side; default: all cores")
    return parser


def train_both(ours, theirs, steps, turn):
    """Train both sides, a few steps in turn; return their seconds per step, by turn."""
    taken = {"npformer": [], "PyTorch": []}
    for done in range(0, steps, turn):
        for who, side in zip(taken, (ours, theirs), strict=True):
            taken[who].append(side.call("seconds", min(turn, steps - done)))
    return taken


def versions():
    """Return what the figures depend on besides the machine."""
    return {"torch": version("torch"), "threads": cores()}


def ratio_of(taken):
    """Return ours / theirs of the median step of two sides."""
    return significant(ratio(taken["npformer"], taken["PyTorch"])["of_medians"])
