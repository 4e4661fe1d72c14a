"""The time of small kernels in a training step, and of the functional pairs that they replace.

`kernels` leaves one feature out and times whole steps, too coarse for gains of a few per cent
on a shared machine. Here only the function itself is timed, within steps.
"""

import statistics
import time
from contextlib import contextmanager
from unittest import mock

from benchmarks.kernels import begun
from benchmarks.ours import Training
from benchmarks.results_files import markdown, write
from benchmarks.workloads import WORKLOADS
from npformer import functional as F
from npformer import optim
from npformer.engine import cpu
from npformer.engine.blas import OneBlasThread

NAMES = {
    "fourier_mixing": "Fourier mixing",
    "layer_norm": "layer norm",
    "linear": "linear",
    "dropout": "dropout",
    "embedding": "embedding",
    "adam_update": "Adam",
}
ROUNDS = {"S": 40, "M": 7, "X": 7}
STEPS = {"S": 3, "M": 1, "X": 1}


class Clock:
    """Adds up the seconds that functions take."""

    def __init__(self):
        self.seconds = 0.0

    def on(self, function):
        """Return the function, timed."""

        def timed(*arguments, **options):
            began = time.perf_counter()
            result = function(*arguments, **options)
            self.seconds += time.perf_counter() - began
            return result

        return timed


def pair(name):
    """Return a functional pair with the signature of a kernel.

    A kernel also takes a context, which lends memory, and `of_input`, which is False if the
    gradient of x is not needed; the pair always computes it.
    """
    forward, backward = getattr(F, name), getattr(F, f"{name}_backward")
    return (
        lambda *arguments, context, **options: forward(*arguments, **options),
        lambda dy, cache, of_input=True: backward(dy, cache),
    )


@contextmanager
def timed_on(clock, name, plain):
    """Time a kernel, or the plain function that it replaces."""
    if name in cpu.UPDATES:
        update = getattr(optim, name) if plain else cpu.UPDATES[name]
        changed = mock.patch.dict(cpu.UPDATES, {name: clock.on(update)})
    else:
        functions = pair(name) if plain else cpu.KERNELS[name]
        timed = tuple(clock.on(function) for function in functions)
        changed = mock.patch.dict(cpu.KERNELS, {name: timed})
    with changed:
        yield


def measure(workload):
    """Return the milliseconds of a step, and of each part with and without its kernel."""
    parts = begun(workload, "fourier", dropout=0.1, share=2)
    training, n = Training(*parts, workers=1), STEPS[workload.name]
    whole, timings = [], {(name, plain): [] for name in NAMES for plain in (False, True)}
    with OneBlasThread():
        for _ in range(ROUNDS[workload.name]):
            for (name, plain), taken in timings.items():
                clock = Clock()
                with timed_on(clock, name, plain):
                    training.train()
                    clock.seconds = 0.0
                    seconds = training.seconds(n)
                    if not plain:
                        whole.append(seconds)
                taken.append(clock.seconds / n)
    step = 1e3 * statistics.median(whole)
    found = {key: 1e3 * statistics.median(taken) for key, taken in timings.items()}
    return {
        "step": round(step, 3),
        "parts": {
            name: {
                "kernel": round(found[name, False], 3),
                "pair": round(found[name, True], 3),
                "gain": round((found[name, True] - found[name, False]) / step, 2) + 0.0,  # no -0
            }
            for name in NAMES
        },
    }


def run():
    figures = {name: measure(WORKLOADS[name]) for name in ROUNDS}
    write("parts", figures, table(figures))


def table(figures):
    """Return a row for each kernel, and a column for each workload."""
    cell = "{kernel:.3g}, {pair:.3g} ({gain:.0%})"
    rows = [
        (title, *(cell.format(**f["parts"][name]).replace("%", " %") for f in figures.values()))
        for name, title in NAMES.items()
    ]
    steps = ", ".join(f"{f['step']:.3g} ms on {name}" for name, f in figures.items())
    made = markdown(("ms of a step: the kernel's, the pair's", *figures), rows)
    return (
        f"{made}\n\n"
        "Forward and backward, in a training step of half a batch on one core with a Fourier "
        f"mixer, gelu and dropout 0.1, which takes {steps}. In brackets: what the kernel gains, "
        "as a share of that step. Medians."
    )
