"""What the model needs from this machine: steps on one core, exchanges through shared memory.

Other programs may be running, so steps are measured in CPU seconds, and of all tries the
fastest counts.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from functools import partial

import numpy as np

import npformer as nf
from benchmarks.results_files import ROOT, machine
from benchmarks.timing import significant
from benchmarks.workloads import CLASSES, VOCABULARY, WORKLOADS, Workload

BERT = Workload("BERT", 4, 128, 768, 3072, 12)
SIZES = {name: WORKLOADS[name] for name in "SMX"} | {"BERT": BERT}
HEADS = {"BERT": 12}
VOCABULARIES = {"BERT": 30522}
BATCHES = {"S": (1, 4, 16, 32), "M": (1, 4, 16, 32), "X": (1, 4, 16), "BERT": (1, 4)}
SECONDS = {"S": 2.0, "M": 5.0, "X": 6.0, "BERT": 9.0}
"""Seconds for each batch size of a model; at least two steps."""

FITTED = 1 << 18
"""Numbers in the vector that bandwidth and sums are measured with: 1 MB, because many ranks have
small shards."""

RUNS = 4
"""Runs of the exchanges, each by new processes, whose memory may be placed better or worse."""

VECTORS = (1, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Numbers in the vectors for which the formula is compared with two ranks."""


def fastest(call, seconds, clock=time.perf_counter, least=2):
    """Return the seconds of the fastest call, after one to warm up."""
    call()
    found, began = [], time.perf_counter()
    while len(found) < least or time.perf_counter() - began < seconds:
        start = clock()
        call()
        found.append(clock() - start)
    return significant(min(found))


def steps(name):
    """Return the bytes and seconds of a model's steps on one core."""
    from npformer.engine.team import Team

    w = SIZES[name]
    config = nf.EncoderConfig(
        d_model=w.d_model,
        n_layers=w.layers,
        n_heads=HEADS.get(name, 4),
        d_ff=w.d_ff,
        max_len=w.length,
    )
    vocabulary = VOCABULARIES.get(name, VOCABULARY)
    model = nf.SequenceClassifier(config, CLASSES, vocab_size=vocabulary, pooling="mean", seed=0)
    optimizer = nf.Adam(model.parameters(), lr=1e-6)
    team, rng = Team(model, workers=1), np.random.default_rng(0)
    compute = {}
    for batch in BATCHES[name]:
        x = rng.integers(vocabulary, size=(batch, w.length))
        data = model.batch(x, rng.integers(CLASSES, size=batch))
        step = partial(team.step, data, generator=rng)
        compute[batch] = fastest(step, SECONDS[name], time.process_time)
    _, gradients = team.step(data, generator=rng)
    update = fastest(lambda: optimizer.step(gradients), 1.0, time.process_time)
    return {
        "workload": asdict(w),
        "parameters": sum(value.size for value in model.parameters().values()),
        "pieces": pieces(model),
        "compute": compute,
        "update": update,
    }


def pieces(model):
    """Return the bytes of each part's gradients, in the order of the backward pass."""
    sizes = {}
    for name, value in model.parameters().items():
        words = name.split(".")
        part = ".".join(words[:3]) if words[0] == "encoder" and "blocks" in words else words[0]
        sizes[part] = sizes.get(part, 0) + value.nbytes
    blocks = [part for part in sizes if "blocks" in part]
    first = [part for part in sizes if part.startswith("embed")]
    last = [part for part in sizes if part not in {*blocks, *first}]
    return [
        sum(sizes[part] for part in last),
        *(sizes[part] for part in reversed(blocks)),
        sum(sizes[part] for part in first),
    ]


def exchanges():
    """Return the seconds of exchanges between two ranks of this machine; both of them call this."""
    from mpi4py import MPI

    from npformer.training.distributed import world

    ranks, comm = world(), MPI.COMM_WORLD
    other = 1 - ranks.rank
    one, there = np.ones((2, 1), "float32")

    def timed(call):
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    def best(call, seconds=1.0):
        tries = int(comm.allreduce(max(5, seconds / comm.allreduce(timed(call))), MPI.MIN))
        return comm.allreduce(min(timed(call) for _ in range(tries)), MPI.MAX)

    x = np.ones(FITTED, "float32")
    two = np.ones((2, FITTED), "float32")
    found = {
        "message": best(lambda: comm.Sendrecv(one, other, recvbuf=there, source=other)),
        "meeting": best(ranks._meet),
        "gather": best(lambda: ranks.all_gather(x)),
        "scatter": best(lambda: ranks.reduce_scatter(x)),
        "sum": fastest(lambda: np.add(*two, out=two[0]), 1.0, time.process_time),
    }
    for n in VECTORS:
        found[str(4 * n)] = best(partial(ranks.all_reduce, np.ones(n, "float32")))
    return found


def memory(runs):
    """Return the cost of messages within a machine, from several runs of `exchanges`.

    Bandwidth and sums are those of the exchanges themselves, with the copies that MPI and npformer
    make: an all-gather moves half of a vector, a reduce-scatter moves and adds as much.
    """
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    moved = 4 * FITTED / 2
    gather = (best["gather"] - best["meeting"]) / moved
    scatter = (best["scatter"] - best["meeting"]) / moved
    alone = best["sum"] / (2 * moved)
    found = {
        "latency": best["message"],
        "call": max(0.0, best["meeting"] - best["message"]),
        "bandwidth": 1.0 / gather,
        "add": max(alone, scatter - gather),
        "add_alone": alone,
    }
    found = {name: significant(value) for name, value in found.items()}
    return found | {"all_reduce": {str(4 * n): significant(best[str(4 * n)]) for n in VECTORS}}


def measure(before=None):
    """Return all measurements, each from its own processes; `before`: keep its models."""
    from benchmarks.ranks import mpiexec

    if mpiexec() is None:
        raise SystemExit("there is no mpiexec; install one: python -m pip install 'npformer[mpi]'")
    this = [sys.executable, "-m", "benchmarks.network.measure"]
    found = dict(before or {"machine": machine(), "models": {}})
    for name in () if before else SIZES:
        found["models"][name] = answer([*this, name])
        print(name, found["models"][name], flush=True)
    runs = [answer([mpiexec(), "-n", "2", *this, "memory"]) for _ in range(RUNS)]
    found["memory"] = memory(runs)
    print(found["memory"], flush=True)
    return found


def answer(words):
    """Return a command's output, which is JSON; the command gets one BLAS thread."""
    done = subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    result = exchanges() if sys.argv[1] == "memory" else steps(sys.argv[1])
    from npformer.training.distributed import world

    if world().rank == 0:
        print(json.dumps(result))
