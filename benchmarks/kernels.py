"""What each source of speed is worth: a training step without it, beside the step with all."""

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import erf

import npformer as nf
import npformer.kernels.cpu
from benchmarks.results_files import write
from npformer import kernels, workers
from npformer.bench import CLASSES, HEADS, VOCABULARY, WORKLOADS
from npformer.workers import Team

ROUNDS = {"S": 15, "M": 4, "X": 3}
STEPS = {"S": 5, "M": 1, "X": 1}
"""Steps in a turn that are timed, after one that is not: what changed may have to take memory."""
CPU = "npformer.kernels.cpu"


def module(name):
    """Return a file of the kernels; the package's attribute of that name is the function."""
    return sys.modules[f"{CPU}.{name}"]


@contextmanager
def pairs_for(*names):
    """Compute with the functional pairs where these kernels were."""
    table = kernels.cpu.KERNELS
    with mock.patch.dict(table):
        for name in names:
            del table[name]
        yield


@contextmanager
def without_workspace():
    def empty(self, shape, near, dtype=None):
        return np.empty(shape, near.dtype if dtype is None else dtype)

    with mock.patch.object(nf.Workspace, "empty", empty):
        yield


@contextmanager
def without_pinning():
    """Let Linux place the threads."""
    with (
        mock.patch.object(workers, "_spread", return_value=None),
        mock.patch.dict(workers._pools, clear=True),
    ):
        yield


@contextmanager
def exponential_of_e():
    with ExitStack() as patches:
        for name in ("averaging", "attention", "dense_synthesizer", "activations"):
            for what, value in (("EXP", np.exp), ("UNIT", 1.0)):
                if hasattr(module(name), what):
                    patches.enter_context(mock.patch.object(module(name), what, value))
        yield


@contextmanager
def scipys_erf():
    def gelu(x, y, keep, scratch):
        phi = 0.5 * (1.0 + erf(x * np.float32(0.5**0.5)))
        np.multiply(x, phi, out=y)
        if keep:
            x *= np.exp(-0.5 * x * x) * (2.0 * np.pi) ** -0.5
            x += phi

    with mock.patch.dict(module("activations").ACTIVATIONS, gelu=gelu):
        yield


def row_maxima():
    return mock.patch.object(module("averaging"), "SAFE", -1.0)


def recomputed():
    return mock.patch.object(module("averaging"), "STORED", 0)


def plain():
    return nf.use_kernels(False)


@dataclass(frozen=True)
class Without:
    """What is taken away from a training step, and from which one."""

    name: str
    away: Callable[[], Any] = ExitStack
    mixer: str = "attention"
    dropout: float = 0.0
    norm: str = "post"
    workers: int = 2
    processes: bool = False
    beside_processes: bool = False

    @property
    def model(self):
        """What decides the model."""
        return self.mixer, self.dropout, self.norm

    @property
    def whole(self):
        """The step with everything that this one is compared with.

        Worker processes see no change that is made here later, so threads are compared with
        threads, and once with processes.
        """
        return Without("", ExitStack, *self.model, processes=self.beside_processes)


def no_updates():
    return mock.patch.dict(kernels.cpu.UPDATES, clear=True)


WITHOUT = [
    Without("nothing: npformer.functional, one worker", plain, workers=1),
    Without("nothing: npformer.functional, two workers", plain),
    Without("without the second worker", workers=1),
    Without("threads instead of processes", beside_processes=True),
    Without("... placed by Linux", without_pinning),
    Without("without workspaces", without_workspace),
    Without("without the attention kernel", lambda: pairs_for("attention_heads")),
    Without("... row maxima subtracted", row_maxima),
    Without("... exp instead of exp2", exponential_of_e),
    Without("... exponentials computed again", recomputed),
    Without("without the feed-forward kernel", lambda: pairs_for("feed_forward")),
    Without("... SciPy's erf", scipys_erf),
    Without("without residual + norm", lambda: pairs_for("residual_norm")),
    Without("... with dropout 0.1", lambda: pairs_for("residual_norm"), dropout=0.1),
    Without("... pre-norm: without layer norm", lambda: pairs_for("layer_norm"), norm="pre"),
    Without(
        "... pre-norm, dropout 0.1: without dropout",
        lambda: pairs_for("dropout"),
        dropout=0.1,
        norm="pre",
    ),
    Without("without linear", lambda: pairs_for("linear")),
    Without("without embedding", lambda: pairs_for("embedding")),
    Without("without Adam in pieces", no_updates),
    Without(
        "without the synthesizer kernel", lambda: pairs_for("dense_heads"), "dense_synthesizer"
    ),
    Without("without the Fourier kernel", lambda: pairs_for("fourier_mixing"), "fourier"),
]


class Training:
    """Steps of one model, with teams of any kind."""

    def __init__(self, workload, mixer, dropout, norm):
        w = workload
        config = nf.EncoderConfig(
            d_model=w.d_model,
            n_layers=w.n_layers,
            n_heads=HEADS,
            d_ff=w.d_ff,
            max_len=w.length,
            mixer=mixer,
            dropout=dropout,
            norm=norm,
        )
        rng = np.random.default_rng(0)
        self.model = nf.SequenceClassifier(config, n_classes=CLASSES, vocab_size=VOCABULARY)
        self.generator, self.teams = rng, {}
        self.optimizer = nf.Adam(self.model.parameters(), lr=1e-4)
        self.x = rng.integers(VOCABULARY, size=(w.batch, w.length))
        self.y = rng.integers(CLASSES, size=w.batch)

    def turn(self, without, n):
        """Return the seconds of a step, over n, with something taken away."""
        kind = without.workers, without.processes
        if kind not in self.teams:
            self.teams[kind] = Team(self.model, without.workers, processes=without.processes)
        with without.away():
            self.step(self.teams[kind])
            began = time.perf_counter()
            for _ in range(n):
                self.step(self.teams[kind])
            return (time.perf_counter() - began) / n

    def step(self, team):
        """Run one step."""
        _, gradients = team.step(self.x, self.y, None, generator=self.generator)
        self.optimizer.step(gradients)


def measure(workload):
    """Return the ratios of each step to the one with everything, round by round.

    They are of steps that followed each other within seconds: a shared machine drifts by more than
    most kernels gain.
    """
    n = STEPS[workload.name]
    models = {step.model: Training(workload, *step.model) for step in WITHOUT}
    # Processes first: what they copy should not hold the memory of others.
    whole = sorted({step.whole for step in WITHOUT}, key=lambda step: not step.processes)
    taken = {step: [] for step in (*whole, *WITHOUT)}
    for i in range(ROUNDS[workload.name] + 1):
        for step, seconds in taken.items():
            one = models[step.model].turn(step, n)
            if i > 0:
                seconds.append(one)
    for training in models.values():
        for team in training.teams.values():
            team.__exit__()
    return {
        step.name: [a / b for a, b in zip(taken[step], taken[step.whole], strict=True)]
        for step in WITHOUT
    }


def run():
    figures = {}
    for name, workload in WORKLOADS.items():
        figures[name] = {what: summary(ratios) for what, ratios in measure(workload).items()}
        print(name, {k: f["median"] for k, f in figures[name].items()}, flush=True)
    rows = [f"| time of a step, divided by that with everything | {' | '.join(figures)} |"]
    rows.append("|---|" + "---:|" * len(figures))
    for step in WITHOUT:
        found = [f[step.name] for f in figures.values()]
        values = " | ".join(f"{f['median']:.2f} ({f['q1']:.2f}-{f['q3']:.2f})" for f in found)
        rows.append(f"| {step.name} | {values} |")
    rounds = ", ".join(f"{n} on {name}" for name, n in ROUNDS.items())
    rows += ["", f"Medians and quartiles over rounds: {rounds}."]
    write("kernels", figures, "\n".join(rows))


def summary(ratios):
    """Return the median and the quartiles of some ratios."""
    q1, median, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"median": round(median, 3), "q1": round(q1, 3), "q3": round(q3, 3)}
