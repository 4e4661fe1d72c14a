"""Two ranks with a core each against two workers in one process: `fit` on M and X."""

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.results_files import ROOT, write
from benchmarks.workloads import CLASSES, HEADS, LEARNING_RATE, MIXERS, VOCABULARY, WORKLOADS
from npformer.core import cores
from npformer.distributed import world

BATCHES, ROUNDS = {"M": 4, "X": 3}, 5


def seconds_of_a_step(mixer, size):
    """Return how long a step of `fit` takes: that of the second epoch of a model."""
    w, n = WORKLOADS[size], BATCHES[size]
    rng = np.random.default_rng(0)
    x = rng.integers(0, VOCABULARY, (n * w.batch, w.length))
    config = nf.EncoderConfig(
        d_model=w.d_model,
        n_layers=w.layers,
        n_heads=HEADS,
        d_ff=w.d_ff,
        max_len=w.length,
        mixer=mixer,
        dropout=0.1,
    )
    model = nf.SequenceClassifier(config, CLASSES, vocab_size=VOCABULARY, seed=0)
    history = nf.fit(
        model,
        (x, rng.integers(0, CLASSES, len(x))),
        epochs=2,
        batch_size=w.batch,
        lr=LEARNING_RATE,
        progress=False,
        communicator=world(),
    )
    return history.seconds[1] / n, history.workers


def mpiexec():
    """Return the launcher beside this Python, or that on the PATH."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def run():
    """Take turns, round by round, each in processes of its own."""
    if mpiexec() is None:
        raise SystemExit("there is no mpiexec; install one: python -m pip install 'npformer[mpi]'")
    cases = [(mixer, size) for size in BATCHES for mixer in MIXERS]
    seconds = {(*case, way): [] for case in cases for way in ("ranks", "workers")}
    for _ in range(ROUNDS):
        for *case, way in seconds:
            launcher = [mpiexec(), "-n", str(cores())] if way == "ranks" else []
            done = subprocess.run(
                [*launcher, sys.executable, "-m", "benchmarks.ranks", *case],
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds[*case, way].append(json.loads(done.stdout.splitlines()[-1]))
        print({" ".join(each): round(taken[-1], 3) for each, taken in seconds.items()}, flush=True)
    n, figures = cores(), {}
    lines = [f"| size | mixer | {n} ranks / {n} workers |", "|---|---|---:|"]
    for mixer, size in cases:
        pairs = zip(seconds[mixer, size, "ranks"], seconds[mixer, size, "workers"], strict=True)
        figures[f"{mixer}, {size}"] = ratio = statistics.median(a / b for a, b in pairs)
        lines.append(f"| {size} | `{mixer}` | {ratio:.2f} |")
    lines.append(
        f"\nTime of a step of `fit` by {n} ranks with one core each, divided by its time by {n} "
        f"workers of one process: float32, dropout 0.1, medians of {ROUNDS} rounds in turn. M: "
        "batches of 32 with 128 tokens, d_model 256, 4 layers; X: 16 with 512 tokens, 2 layers."
    )
    write("ranks", figures, "\n".join(lines))


if __name__ == "__main__":
    taken, by = seconds_of_a_step(*sys.argv[1:])
    if world().rank == 0:
        print(by, file=sys.stderr)
        print(taken)
