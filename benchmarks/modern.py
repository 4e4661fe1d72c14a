"""Training steps of today's encoder and writer compared with PyTorch, and what a window saves."""

import itertools
from functools import partial

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.ours import Training
from benchmarks.results_files import markdown, write
from benchmarks.sides import both, logits_apart, timing
from benchmarks.timing import interleave, ratio, timed
from benchmarks.workloads import M, S, X
from npformer.core import Context, Gradients

KINDS = {"encoder": {}, "writer": {"causal": True}}
LENGTH, WINDOW = 4096, 128


def config_of(workload, kind):
    """Return today's settings with the sizes of a workload; d_ff is two thirds as large."""
    sizes = workload.sizes()
    del sizes["d_ff"]
    return nf.EncoderConfig.modern(**sizes, **KINDS[kind])


class Ours(Training):
    """npformer's classifier, and its steps."""

    def __init__(self, workload, config):
        words, classes = workloads.VOCABULARY, workloads.CLASSES
        model = nf.SequenceClassifier(config, classes, vocab_size=words, seed=0)
        pairs = workloads.batches(workload)
        self.first = pairs[0][0]
        adam = nf.Adam(model.parameters(), lr=workloads.LEARNING_RATE)
        super().__init__(model, adam, itertools.cycle(pairs))

    def logits(self):
        """Return the logits of the first batch."""
        return np.array(self.model(self.first))


def compare(workload, kind):
    """Time training steps of both in turn; return the figures."""
    config = config_of(workload, kind)
    here = "benchmarks.modern", "Ours", workload, config
    there = "benchmarks.peers.modern", "Peer", workload, config
    with both(here, there) as (ours, theirs):
        logits_apart(ours.call("logits"), theirs.call("logits"))
        turns = {"npformer": partial(ours.call, "turn"), "PyTorch": partial(theirs.call, "turn")}
        found = timing(turns, (ours.pid, theirs.pid), seconds=10.0)
    return {"workload": workload.name, "kind": kind} | found


def windowed():
    """Time attention with and without a window at a long length; return the ratios."""
    rng, found = np.random.default_rng(0), {}
    x, dy = (rng.normal(size=(1, LENGTH, 256)).astype("float32") for _ in range(2))
    for causal in (False, True):
        steps = {}
        for window in (None, WINDOW):
            attention = nf.mixers.GeneralAttention(
                256,
                4,
                causal=causal,
                rope_theta=10000.0,
                window=window,
                memory="auto",
                seed=0,
            )
            layer = nf.fast(attention)

            def step(layer=layer):
                _, cache = layer.forward(x, Context())
                layer.backward(dy, cache, Gradients(layer))

            steps[window] = partial(timed, step)
        taken = interleave(steps, 10.0)
        found["causal" if causal else "both sides"] = ratio(taken[WINDOW], taken[None])
    return found


def run():
    figures = {"steps": [], "window": windowed()}
    print(figures["window"], flush=True)
    for workload, kind in itertools.product((S, M, X), KINDS):
        figures["steps"].append(compare(workload, kind))
        print(figures["steps"][-1], flush=True)
    write("modern", figures, table(figures), threads=workloads.THREADS)


def table(figures):
    """Return a row for each size and kind, and what a window saves."""
    rows = [
        (
            each["workload"],
            each["kind"],
            *(f"{each['ms'][who]['median']:.1f}" for who in ("npformer", "PyTorch")),
            f"{each['ratio']['PyTorch']['of_medians']:.2f}",
        )
        for each in figures["steps"]
    ]
    heads = "model", "kind", "npformer, ms", "PyTorch, ms", "npformer / PyTorch"
    windows = ", ".join(
        f"{name} {each['of_medians']:.2f}" for name, each in figures["window"].items()
    )
    return (
        f"{markdown(heads, rows, left=2)}\n\n"
        "Training steps of classifiers with `EncoderConfig.modern`: forward, loss, backward, Adam. "
        "PyTorch eager, with `scaled_dot_product_attention`. Medians of interleaved rounds, "
        "float32; below 1 npformer is faster.\n\n"
        f"A window of {WINDOW} tokens at length {LENGTH}, attention alone, forward and backward: "
        f"its time over that of full attention is {windows}."
    )
