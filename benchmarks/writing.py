"""Models that write, compared with PyTorch: generated tokens, copying and reversing.

Training steps are in `translating` and `shakespeare`. PyTorch runs eagerly. Its generation
has a preallocated cache, under `inference_mode`, and is tried with one thread and with two, of
which the faster counts.
"""

import argparse
import statistics
import time

import numpy as np

import npformer as nf
from benchmarks.decoders import config_of
from benchmarks.results_files import markdown, write
from benchmarks.timing import ratio, significant
from npformer.core import cores

SIZES = 64, 2, 4, 256
"""d_model, layers on each side, heads, d_ff."""

VOCAB = 100
GPTS = {"d 128, 4 layers": (128, 4, 4, 512), "d 256, 6 layers": (256, 6, 8, 1024)}
PROMPT, NEW = 16, 96
SYMBOLS, LONGEST, SAMPLES, BATCH, STEPS = 26, 20, 1000, 64, 1000
SEEDS = 0, 1, 2


def tokens(rounds):
    """Return ours / theirs for a generated token, with a cache, and what the cache gains."""
    import torch

    from benchmarks.peers.decoders import GPT

    found = {}
    for name, sizes in GPTS.items():
        for batch in (1, 16):
            ids = np.random.default_rng(0).integers(0, VOCAB, (batch, PROMPT))
            config = config_of(sizes, PROMPT + NEW, norm="pre", causal=True)
            ours = nf.LanguageModel(config, VOCAB, seed=0)
            theirs = GPT(sizes, PROMPT + NEW, VOCAB)
            given, taken = torch.from_numpy(ids), {"ours": [], 1: [], 2: []}
            for _ in range(rounds):
                began = time.perf_counter()
                ours.generate(ids, NEW, temperature=0)
                taken["ours"].append(time.perf_counter() - began)
                for threads in (1, 2):
                    torch.set_num_threads(threads)
                    began = time.perf_counter()
                    theirs.greedy(given, NEW)
                    taken[threads].append(time.perf_counter() - began)
            best = min((1, 2), key=lambda threads: statistics.median(taken[threads]))
            found[f"{name}, batch {batch}"] = ratio(taken["ours"], taken[best])["of_medians"]
    long = config_of(GPTS["d 128, 4 layers"], 512, activation="relu", norm="pre", causal=True)
    model, ids = nf.LanguageModel(long, VOCAB, seed=0), np.zeros((1, 480), int)
    both = {}
    for cache in (True, False):
        began = time.perf_counter()
        model.generate(ids, 32, temperature=0, cache=cache)
        both[cache] = time.perf_counter() - began
    found["without / with a cache, at length 512"] = significant(both[False] / both[True])
    return found


def pairs_of(task, n, seed):
    """Return sources and targets of up to `LONGEST` symbols: copied, or reversed."""
    rng = np.random.default_rng(seed)
    source, target = np.zeros((n, LONGEST), int), np.zeros((n, LONGEST + 2), int)
    target[:, 0] = 1
    for i, length in enumerate(rng.integers(1, LONGEST + 1, n)):
        symbols = rng.integers(3, 3 + SYMBOLS, length)
        source[i, :length] = symbols
        target[i, 1 : length + 1] = symbols[::-1] if task == "reverse" else symbols
        target[i, length + 1] = 2
    return source, target


def right(written, target):
    """Return the share of targets that were written exactly, up to the end token."""
    wanted = [[t for t in row[1:].tolist() if t > 2] for row in target]
    ends = [[*row, 2][: [*row, 2].index(2)] for row in written]
    return float(np.mean([one == other for one, other in zip(ends, wanted, strict=True)]))


def tasks():
    """Return, by task, the share of unseen sequences written right, and ours / theirs for time.

    Each has an entry for each seed. Both sides start with the same weights.
    """
    import torch

    torch.set_num_threads(cores())
    found = {}
    for task in ("copy", "reverse"):
        found[task] = [one_training(task, seed) for seed in SEEDS]
        print(task, found[task], flush=True)
    return found


def one_training(task, seed):
    """Train both sides on a task; return the shares written right and the ratio of their times."""
    import torch

    from benchmarks.peers.decoders import Translator

    vocab, max_len = 3 + SYMBOLS, LONGEST + 2
    source, target = pairs_of(task, BATCH * STEPS, 2 * seed)
    unseen = pairs_of(task, SAMPLES, 2 * seed + 1)
    config = config_of(SIZES, max_len, activation="relu", norm="pre", scale_embeddings=False)
    model = nf.EncoderDecoder(config, vocab, vocab, seed=seed)
    theirs = Translator(SIZES, max_len, (vocab, vocab), norm="pre")
    theirs.load(model.parameters())

    began = time.perf_counter()
    nf.fit(
        model,
        (source, target),
        epochs=1,
        batch_size=BATCH,
        batches="shuffled",
        lr=1e-3,
        schedule=lambda step: min(1.0, step / 100),
        seed=seed,
        progress=False,
    )
    seconds = time.perf_counter() - began
    share = right(model.generate(unseen[0], max_len), unseen[1])

    adam = torch.optim.Adam(theirs.parameters(), lr=1e-3)
    began = time.perf_counter()
    for step in range(STEPS):
        adam.param_groups[0]["lr"] = 1e-3 * min(1.0, (step + 1) / 100)
        rows = slice(step * BATCH, (step + 1) * BATCH)
        adam.zero_grad()
        theirs.loss(*(torch.from_numpy(a[rows]) for a in (source, target))).backward()
        adam.step()
    their_seconds = time.perf_counter() - began
    theirs.eval()
    written = theirs.greedy(torch.from_numpy(unseen[0]), LONGEST + 1).tolist()
    return {
        "npformer": share,
        "PyTorch": right(written, unseen[1]),
        "time": significant(seconds / their_seconds),
    }


def run(options):
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks writing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each generation")
    chosen = parser.parse_args(options)
    figures = {"tokens": tokens(chosen.rounds)}
    print(figures, flush=True)
    figures["tasks"] = tasks()
    write("writing", figures, table(figures))


def table(figures):
    """Return both tables, and what was done."""
    *tokens, (what, gain) = figures["tokens"].items()
    rows = [
        (
            task,
            *(" ".join(f"{run[who]:.3f}" for run in runs) for who in ("npformer", "PyTorch")),
            " ".join(f"{run['time']:.2f}" for run in runs),
        )
        for task, runs in figures["tasks"].items()
    ]
    heads = "generated token, with a cache", "npformer / PyTorch"
    parts = (
        markdown(heads, [(name, f"{value:.2f}") for name, value in tokens]),
        f"Time {what} (d 128, 4 layers, batch 1): {gain:.1f}.",
        markdown(("task", "written right", "PyTorch's", "time / PyTorch's"), rows),
        f"{cores()} threads each, medians. Generation: greedy, {NEW} "
        f"tokens behind {PROMPT}, PyTorch with one or two threads, whichever is faster. Tasks: 1 "
        f"to {LONGEST} of {SYMBOLS} symbols, {STEPS} steps of {BATCH}, d_model 64, two layers on "
        f"each side, pre-norm, lr 0.001 after 100 steps, the same weights at first, seeds "
        f"{' '.join(map(str, SEEDS))}; {SAMPLES} unseen sequences, written freely, exact.",
    )
    return "\n\n".join(parts)
