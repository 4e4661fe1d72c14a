"""What each source of speed is worth: a training step without it, beside the step with all."""

import statistics
import sys
import time
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
from scipy.special import erf

import npformer as nf
import npformer.kernels.cpu
from benchmarks.results_files import write
from npformer import kernels, workers
from npformer.bench import CLASSES, HEADS, VOCABULARY, WORKLOADS
from npformer.workers import Team

ROUNDS = {"S": 25, "M": 5, "X": 5}
CPU = "npformer.kernels.cpu"


def module(name):
    """Return a file of the kernels; the package's attribute of that name is the function."""
    return sys.modules[f"{CPU}.{name}"]


@contextmanager
def without(*names):
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


# name, mixer, dropout, workers, what is taken away
STEPS = [
    ("nothing: npformer.functional, one worker", "attention", 0.0, 1, plain),
    ("nothing: npformer.functional, two workers", "attention", 0.0, 2, plain),
    ("without the second worker", "attention", 0.0, 1, ExitStack),
    ("without cores for each worker", "attention", 0.0, 2, without_pinning),
    ("without workspaces", "attention", 0.0, 2, without_workspace),
    ("without the attention kernel", "attention", 0.0, 2, lambda: without("attention_heads")),
    ("... row maxima subtracted", "attention", 0.0, 2, row_maxima),
    ("... exp instead of exp2", "attention", 0.0, 2, exponential_of_e),
    ("... exponentials computed again", "attention", 0.0, 2, recomputed),
    ("without the feed-forward kernel", "attention", 0.0, 2, lambda: without("feed_forward")),
    ("... SciPy's erf", "attention", 0.0, 2, scipys_erf),
    ("without residual + norm", "attention", 0.0, 2, lambda: without("residual_norm")),
    ("... with dropout 0.1", "attention", 0.1, 2, lambda: without("residual_norm")),
    ("without linear", "attention", 0.0, 2, lambda: without("linear")),
    ("without embedding", "attention", 0.0, 2, lambda: without("embedding")),
    (
        "without Adam in pieces",
        "attention",
        0.0,
        2,
        lambda: mock.patch.dict(kernels.cpu.UPDATES, clear=True),
    ),
    ("without the synthesizer kernel", "dense_synthesizer", 0.0, 2, lambda: without("dense_heads")),
    ("without the Fourier kernel", "fourier", 0.0, 2, lambda: without("fourier_mixing")),
]


class Training:
    """Steps of one model with some workers."""

    def __init__(self, workload, mixer, dropout, n_workers):
        w = workload
        config = nf.EncoderConfig(
            d_model=w.d_model,
            n_layers=w.n_layers,
            n_heads=HEADS,
            d_ff=w.d_ff,
            max_len=w.length,
            mixer=mixer,
            dropout=dropout,
        )
        rng = np.random.default_rng(0)
        model = nf.SequenceClassifier(config, n_classes=CLASSES, vocab_size=VOCABULARY)
        self.team, self.generator = Team(model, n_workers), rng
        self.optimizer = nf.Adam(model.parameters(), lr=1e-4)
        self.x = rng.integers(VOCABULARY, size=(w.batch, w.length))
        self.y = rng.integers(CLASSES, size=w.batch)

    def step(self):
        """Return the seconds of a step."""
        began = time.perf_counter()
        _, gradients = self.team.step(self.x, self.y, None, generator=self.generator)
        self.optimizer.step(gradients)
        return time.perf_counter() - began


def measure(workload):
    """Return the ratio of each step to the one with everything, in turn round by round."""
    made = {}

    def training(mixer, dropout, n_workers):
        key = (mixer, dropout, n_workers)
        if key not in made:
            made[key] = Training(workload, *key)
        return made[key]

    taken = {name: [] for name, *_ in STEPS}
    whole = {}
    for i in range(ROUNDS[workload.name] + 1):
        for mixer, dropout in dict.fromkeys((m, p) for _, m, p, _, _ in STEPS):
            training(mixer, dropout, 2).step()
            whole.setdefault((mixer, dropout), []).append(training(mixer, dropout, 2).step())
        for name, mixer, dropout, n_workers, away in STEPS:
            trained = training(mixer, dropout, n_workers)
            with away():
                trained.step()  # what changed may have to take memory, or start threads
                seconds = trained.step()
            if i > 0:
                taken[name].append(seconds)
    return {
        name: statistics.median(taken[name]) / statistics.median(whole[mixer, dropout][1:])
        for name, mixer, dropout, _, _ in STEPS
    }


def run():
    figures = {}
    for name, workload in WORKLOADS.items():
        figures[name] = measure(workload)
        print(name, {k: round(v, 2) for k, v in figures[name].items()}, flush=True)
    rows = [f"| time of a step, divided by that with everything | {' | '.join(figures)} |"]
    rows.append("|---|" + "---:|" * len(figures))
    for name, *_ in STEPS:
        rows.append(f"| {name} | {' | '.join(f'{f[name]:.2f}' for f in figures.values())} |")
    write("kernels", figures, "\n".join(rows))
