"""From the Transformer of 2017 to that of today, one change at a time, on the plays.

A character model of the plays that come with the package. Each row is the model of the row above it
with one change. All rows of a seed are trained on the same windows of text. One core does
everything, and its time is counted: what other programs do meanwhile is not.
"""

import argparse
import json
import os
import statistics
import time

import numpy as np

import npformer as nf
from benchmarks.questions_gpt import plays
from benchmarks.results_files import RESULTS, markdown, write
from benchmarks.timing import interleave, significant
from npformer.optim import NORMS_AND_BIASES

LENGTH, BATCH, STEPS, WARM_UP, LR = 128, 8, 600, 60, 1e-2
SEEDS = (0, 1, 2)

START = {"d_model": 48, "n_layers": 4, "n_heads": 4, "d_ff": 192, "max_len": LENGTH}
START |= {"causal": True, "activation": "relu"}

CHANGES = {
    "the Transformer of 2017": {},
    "pre-norm": {"norm": "pre"},
    "RMS norm": {"norm_kind": "rms"},
    "rotary positional encoding": {"positions": "rotary"},
    "SwiGLU, as many weights": {"ffn": "gated", "activation": "silu", "d_ff": 128},
    "no biases": {"bias": False},
    "grouped queries, 2 heads kept": {"n_kv_heads": 2},
    "a window of 32": {"window": 32},
    "norms of queries and keys": {"qk_norm": True},
}
"""Each on top of all before it."""


def configs():
    """Return the configuration of each row."""
    settings, found = dict(START), {}
    for name, change in CHANGES.items():
        settings |= change
        found[name] = nf.EncoderConfig(**settings)
    return found


def texts():
    """Return the training part of the plays and the last tenth, as numbers."""
    train, test = plays()
    number = {c: k for k, c in enumerate(sorted(set(train + test)))}
    return [np.array([number[c] for c in part]) for part in (train, test)], len(number)


def windows(ids, starts):
    """Return windows of a text, and in each place the character that follows."""
    at = np.asarray(starts)[:, None] + np.arange(LENGTH)
    return ids[at], ids[at + 1]


def loss_of(config, seed, ids, vocab, **training):
    """Return the loss on the last tenth after a training, in nats a character."""
    train, test = ids
    starts = np.random.default_rng(seed).integers(len(train) - LENGTH, size=STEPS * BATCH)
    model = nf.LanguageModel(config, vocab, seed=seed)
    usual = {
        "lr": LR,
        "schedule": nf.optim.cosine(STEPS, warmup=WARM_UP, final=0.1),
        "weight_decay": 0.1,
        "no_decay": NORMS_AND_BIASES,
        "clip_norm": 1.0,
    }
    nf.fit(
        model,
        windows(train, starts),
        epochs=1,
        batch_size=BATCH,
        workers=1,
        seed=seed,
        progress=False,
        **(usual | training),
    )
    unseen = windows(test, range(0, len(test) - LENGTH, LENGTH))
    return significant(nf.evaluate(model, unseen, 32).loss)


def turn_of(model, vocab):
    """Return a function that takes n training steps and returns the core's seconds for each."""
    adam = nf.Adam(model.parameters(), lr=1e-4)
    x, y = np.random.default_rng(0).integers(vocab, size=(2, BATCH, LENGTH))

    def turn(n):
        began = time.process_time()
        for _ in range(n):
            adam.step(model.loss_and_gradients(x, y, workers=1)[1])
        return (time.process_time() - began) / n

    return turn


def run(words):
    """Train every row with each seed, and time the rows' steps in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks today", description=__doc__)
    parser.add_argument("--times", action="store_true", help="train nothing; time the steps again")
    options = parser.parse_args(words)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1 first: everything here runs on one core")
    ids, vocab = texts()
    models = {name: nf.LanguageModel(each, vocab, seed=0) for name, each in configs().items()}
    taken = interleave({name: turn_of(m, vocab) for name, m in models.items()}, seconds=60.0)
    losses = {}
    if options.times:
        kept = json.loads((RESULTS / "today.json").read_text())["figures"]
        losses = {each["row"]: each["loss"] for each in kept}
    figures = []
    for name, model in models.items():
        loss = losses.get(name) or [loss_of(model.config, seed, ids, vocab) for seed in SEEDS]
        figures.append(
            {
                "row": name,
                "change": CHANGES[name],
                "loss": loss,
                "ms": significant(1e3 * statistics.median(taken[name])),
                "parameters": model.n_parameters(),
                "state": model.state_bytes(LENGTH),
            }
        )
        print(figures[-1], flush=True)
    write("today", figures, table(figures))


def table(figures):
    """Return a row for each change, with what it changes beside the row before."""
    rows = []
    for before, each in zip([None, *figures[:-1]], figures, strict=True):
        rows.append(
            (
                each["row"],
                f"{each['parameters']:,}",
                f"{statistics.mean(each['loss']):.3f}",
                difference(before, each),
                f"{each['ms']:.0f}",
                f"{each['state'] / 1024:.0f}",
            )
        )
    heads = (
        "one change after the other",
        "parameters",
        "loss",
        "change: mean (each seed)",
        "a step, ms",
        f"state of {LENGTH} characters, KiB",
    )
    seeds = " ".join(str(seed) for seed, _ in enumerate(figures[0]["loss"]))
    return f"{markdown(heads, rows)}\n\nSeeds: {seeds}."


def difference(before, each):
    """Return by how much the loss changes, in the mean and for each seed."""
    if before is None:
        return ""
    by_seed = [b - a for a, b in zip(before["loss"], each["loss"], strict=True)]
    shown = " ".join(f"{d:+.3f}" for d in by_seed)
    return f"{statistics.mean(by_seed):+.3f} ({shown})"
