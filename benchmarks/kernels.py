"""What each optimization gains: a training step without it, compared with the full step."""

import itertools
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

import npformer as nf
from benchmarks import ours
from benchmarks.results_files import markdown, write
from benchmarks.workloads import WORKLOADS, Case, batches
from npformer.engine import cpu, threads
from npformer.engine.cpu.rows import LEAVES

ROUNDS = {"S": 72, "M": 9, "X": 7}
STEPS = {"S": 5, "M": 1, "X": 1}
"""Timed steps in a turn, after one untimed step that fills the caches with this model's data."""


def module(name):
    """Return a module of kernels; as an attribute of the package, its name may be a function."""
    return sys.modules[f"{cpu.__name__}.{name}"]


@contextmanager
def pairs_for(*names):
    """Replace these kernels with their functional pairs."""
    table = cpu.KERNELS
    with mock.patch.dict(table):
        for name in names:
            del table[name]
        yield


@contextmanager
def without_workspace():
    def empty(self, shape, reference, dtype=None):
        return np.empty(shape, reference.dtype if dtype is None else dtype)

    with mock.patch.object(nf.Workspace, "empty", empty):
        yield


@contextmanager
def without_pinning():
    """Let Linux place the threads."""
    with (
        mock.patch.object(threads, "_move_to_first_cores", return_value=None),
        mock.patch.dict(threads._pools, clear=True),
    ):
        yield


@contextmanager
def passes():
    """Let leaves run NumPy's passes."""
    with ExitStack() as patches:
        for leaf in LEAVES.values():
            patches.enter_context(mock.patch.object(leaf, "run", leaf.passes))
        yield


def row_maxima():
    return mock.patch.object(module("exponentials"), "SAFE", -1.0)


def recomputed():
    return mock.patch.object(module("averaging"), "STORED", 0)


def plain():
    return nf.use_kernels(False)


def no_updates():
    return mock.patch.dict(cpu.UPDATES, clear=True)


@contextmanager
def small_ones_away():
    with pairs_for("linear", "layer_norm", "dropout", "embedding"), no_updates():
        yield


@dataclass(frozen=True)
class Step:
    """A training step: of which model it is, and what is left out."""

    name: str = ""
    away: Callable[[], Any] = ExitStack
    mixer: str = "attention"
    dropout: float = 0.0
    workers: int = 2

    @property
    def whole(self):
        """The complete step with which this one is compared."""
        return Step("everything", mixer=self.mixer, dropout=self.dropout)


def without(name, *pairs, **options):
    """Return a step with functional pairs in place of some kernels."""
    return Step(f"without {name}", lambda: pairs_for(*pairs), **options)


STEPS_WITHOUT = [
    Step("nothing: npformer.functional, one worker", plain, workers=1),
    Step("nothing: npformer.functional, two workers", plain),
    Step("without the second worker", workers=1),
    Step("threads placed by Linux", without_pinning),
    Step("without loops: NumPy's passes", passes),
    Step("without workspaces", without_workspace),
    without("the attention kernel", "attention_heads"),
    Step("... row maxima subtracted", row_maxima),
    Step("... exponentials computed again", recomputed),
    without("the synthesizer kernel", "dense_heads", mixer="dense_synthesizer"),
    without("the Fourier kernel", "fourier_mixing", mixer="fourier"),
    without("the feed-forward kernel", "feed_forward"),
    without("the embedding kernel", "embedding"),
    Step("without Adam in pieces", no_updates),
    without("the layer norm kernel", "layer_norm"),
    without("linear in lent memory", "linear"),
    without("dropout in lent memory (rate 0.1)", "dropout", dropout=0.1),
    Step("without the last five (dropout 0.1)", small_ones_away, dropout=0.1),
    Step("... of the Fourier model", small_ones_away, mixer="fourier", dropout=0.1),
]


class Training(ours.Training):
    """A model and a team made without some feature: the team's copies would see no later change."""

    def __init__(self, workload, step):
        parts = begun(workload, step.mixer, step.dropout)
        super().__init__(*parts, step.workers)
        self.away = step.away
        self.turn(1)

    def turn(self, n):
        """Return the seconds per step, over n steps after an untimed one."""
        with self.away():
            self.train()
            return self.seconds(n)


def begun(workload, mixer, dropout=0.0, share=1):
    """Return a workload's model, Adam, and its only batch, again and again; or a share of it."""
    model = ours.classifier(Case("train", workload, mixer, dropout=dropout))
    batch = [array[: workload.batch // share] for array in batches(workload)[0]]
    return model, nf.Adam(model.parameters(), lr=1e-4), itertools.repeat(batch)


def measure(workload):
    """Return the ratio of each step to the complete one, for every round.

    The two steps of a ratio follow each other within seconds, because the speed of a shared machine
    drifts by more than most kernels gain.
    """
    found = {}
    for whole in dict.fromkeys(step.whole for step in STEPS_WITHOUT):
        steps = [whole, *(step for step in STEPS_WITHOUT if step.whole == whole)]
        trainings = {step: Training(workload, step) for step in steps}
        taken = {step: [] for step in steps}
        for i in range(ROUNDS[workload.name]):
            first = i % len(steps)  # the order changes from round to round
            for step in steps[first:] + steps[:first]:
                taken[step].append(trainings[step].turn(STEPS[workload.name]))
        for training in trainings.values():
            training.team.__exit__()
        found |= {
            step: [a / b for a, b in zip(taken[step], taken[whole], strict=True)]
            for step in steps[1:]
        }
    return {step.name: found[step] for step in STEPS_WITHOUT}


def run():
    figures = {}
    for name in ROUNDS:
        workload = WORKLOADS[name]
        figures[name] = {what: summary(ratios) for what, ratios in measure(workload).items()}
        print(name, {k: f["median"] for k, f in figures[name].items()}, flush=True)
    write("kernels", figures, table(figures))


def table(figures):
    """Return a row for each step without something, and a column for each workload."""
    rows = [
        (
            step.name,
            *(
                "{median:.2f} ({q1:.2f}-{q3:.2f})".format(**found[step.name])
                for found in figures.values()
            ),
        )
        for step in STEPS_WITHOUT
    ]
    rounds = ", ".join(f"{n} on {name}" for name, n in ROUNDS.items())
    made = markdown(("time of a step, divided by that with everything", *figures), rows)
    return f"{made}\n\nMedians and quartiles over rounds: {rounds}."


def summary(ratios):
    """Return the median and the quartiles of ratios."""
    q1, median, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"median": round(median, 3), "q1": round(q1, 3), "q3": round(q3, 3)}
