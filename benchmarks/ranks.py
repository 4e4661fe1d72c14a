"""Two ranks with a core each, compared with two workers in one process: `fit` on M and X."""

import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.remote import printed
from benchmarks.results_files import markdown, write
from benchmarks.workloads import CLASSES, LEARNING_RATE, MIXERS, VOCABULARY, WORKLOADS
from npformer.core import cores
from npformer.training.distributed import world

BATCHES, ROUNDS = {"M": 4, "X": 3}, 5

EXCHANGED, LAYERS = 16 << 20, 8
"""How many numbers are exchanged during products, and in how many pieces."""


def seconds_of_a_step(mixer, size):
    """Return how long a step of `fit` takes in a model's second epoch."""
    w, n = WORKLOADS[size], BATCHES[size]
    rng = np.random.default_rng(0)
    x = rng.integers(0, VOCABULARY, (n * w.batch, w.length))
    config = nf.EncoderConfig(**w.sizes(), mixer=mixer, dropout=0.1)
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
    return history.seconds[1] / n


def overlapped():
    """Return the time of exchange and products at once, as a share of one after the other.

    The exchange is in pieces, each started after some products, as after a layer's backward pass.
    """
    from mpi4py import MPI

    ranks, comm = world(), MPI.COMM_WORLD
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(1024, 1024)).astype("float32") for _ in range(2))
    pieces = [np.ones(EXCHANGED // LAYERS, "float32") for _ in range(LAYERS)]
    sums = [np.empty_like(piece) for piece in pieces]

    def products():
        a @ b

    def in_turn():
        for _ in pieces:
            products()
        for piece, total in zip(pieces, sums, strict=True):
            comm.Allreduce(piece, total)

    def side_by_side():
        requests = []
        for piece, total in zip(pieces, sums, strict=True):
            products()
            requests.append(comm.Iallreduce(piece, total))
            MPI.Request.Testall(requests)
        MPI.Request.Waitall(requests)

    ways = {in_turn: [], side_by_side: []}
    for _ in range(2 * ROUNDS):
        for way, taken in ways.items():
            ranks.agree(0.0)
            began = time.perf_counter()
            way()
            taken.append(time.perf_counter() - began)
    one, other = ways.values()
    return statistics.median(b / a for a, b in zip(one, other, strict=True))


def mpiexec():
    """Return the launcher next to this Python, or the one on the PATH."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def figure(by_ranks, *case):
    """Return what this file prints for a case, run by ranks or by one process."""
    launcher = [mpiexec(), "-n", str(cores())] if by_ranks else []
    return printed("benchmarks.ranks", *case, launcher=launcher)


def run():
    """Measure in turn, round by round, each in its own processes."""
    if mpiexec() is None:
        raise SystemExit("there is no mpiexec; install one: python -m pip install 'npformer[mpi]'")
    cases = [(mixer, size) for size in BATCHES for mixer in MIXERS]
    seconds = {(*case, way): [] for case in cases for way in ("ranks", "workers")}
    for _ in range(ROUNDS):
        for *case, way in seconds:
            seconds[*case, way].append(figure(way == "ranks", *case))
        print({" ".join(each): round(taken[-1], 3) for each, taken in seconds.items()}, flush=True)
    figures = {}
    for mixer, size in cases:
        pairs = zip(seconds[mixer, size, "ranks"], seconds[mixer, size, "workers"], strict=True)
        figures[f"{mixer}, {size}"] = statistics.median(a / b for a, b in pairs)
    together = statistics.median(figure(True, "overlap", "-") for _ in range(ROUNDS))
    figures["overlapped / in turn"] = together
    write("ranks", figures, table(figures))


def table(figures):
    """Return a row for each case, and a sentence about the exchange."""
    *cases, (_, gain) = figures.items()
    n, rows = cores(), []
    for name, ratio in cases:
        mixer, size = name.split(", ")
        rows.append((size, f"`{mixer}`", f"{ratio:.2f}"))
    return (
        f"{markdown(('size', 'mixer', f'{n} ranks / {n} workers'), rows, left=2)}\n\n"
        f"Time of a step of `fit` by {n} ranks with one core each, divided by its time by {n} "
        f"workers of one process: float32, dropout 0.1, medians of {ROUNDS} rounds in turn. M: "
        "batches of 32 with 128 tokens, d_model 256, 4 layers; X: 16 with 512 tokens, 2 layers."
        f"\n\nAn exchange of {EXCHANGED >> 18} MB in {LAYERS} pieces beside products of matrices "
        f"takes {gain:.2f} of the time of both in turn, on {n} ranks of this machine."
    )


if __name__ == "__main__":
    name, size = sys.argv[1:]
    found = overlapped() if name == "overlap" else seconds_of_a_step(name, size)
    if world().rank == 0:
        print(found)
