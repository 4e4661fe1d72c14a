"""What is measured: workloads, cases, batches of data, and the work in a training step.

Nothing here imports npformer or PyTorch, so that a process that measures one never loads the
other.
"""

import os
from dataclasses import asdict, dataclass

HEADS, VOCABULARY, CLASSES = 4, 1000, 10
LEARNING_RATE = 1e-4
KERAS_EPSILON = 1e-7  # Adam's in `ffn`, whose original is written in Keras
BATCHES = 4  # several in turn: a model that has learned its only batch has tiny gradients
THREADS = (  # for both sides; npformer's workers="auto" uses the same number
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)

MIXERS = ("attention", "dense_synthesizer", "fourier")
ACTIVATIONS = ("gelu", "relu")
DROPOUTS = (0.0, 0.1)


@dataclass(frozen=True)
class Workload:
    """Sizes of a model and its batch."""

    name: str
    batch: int
    length: int
    d_model: int
    d_ff: int
    layers: int
    heads: int = HEADS

    def sizes(self):
        """Return those of an `EncoderConfig`, by its names."""
        names = "d_model", "n_layers", "n_heads", "d_ff", "max_len"
        sizes = self.d_model, self.layers, self.heads, self.d_ff, self.length
        return dict(zip(names, sizes, strict=True))


S = Workload("S", 32, 64, 64, 256, 2)
M = Workload("M", 32, 128, 256, 1024, 4)
X = Workload("X", 16, 512, 256, 1024, 2)
L = Workload("L", 4, 2048, 256, 1024, 2)
L4096 = Workload("L4096", 2, 4096, 256, 1024, 1)  # attention only
L8192 = Workload("L8192", 1, 8192, 256, 1024, 1)  # attention only: its memory, and one step
LONG4096 = Workload("L4096, 2 layers", 2, 4096, 256, 1024, 2)
LONG8192 = Workload("L8192, 2 layers", 1, 8192, 256, 1024, 2)
DATA_SET = {"S": 64, "M": 8, "X": 4, "L": 4, "L4096": 4}  # batches predicted at a time
WORKLOADS = {workload.name: workload for workload in (S, M, X, L, L4096, L8192, LONG4096, LONG8192)}


@dataclass(frozen=True)
class Case:
    """A model and its task: kind "train" is a whole step, kind "predict" gives labels."""

    kind: str
    workload: Workload
    mixer: str
    activation: str = "gelu"
    dropout: float = 0.0

    def described(self):
        """Return plain values, for JSON."""
        return asdict(self)


def batches(workload):
    """Return x and y for some steps: random token ids and unrelated random labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    shape = (workload.batch, workload.length)
    return [
        (rng.integers(VOCABULARY, size=shape), rng.integers(CLASSES, size=workload.batch))
        for _ in range(BATCHES)
    ]


def data_set(workload):
    """Return the x of several batches, concatenated, to predict in one call."""
    import numpy as np

    found = [x for x, _ in batches(workload)]
    return np.concatenate([found[i % BATCHES] for i in range(DATA_SET[workload.name])])


def vectors(batch, length, width):
    """Return x and y for `ffn`: random features, and labels 0 and 1."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, length, width), dtype="float32")
    return x, rng.integers(2, size=batch)


def matrix_flops(case):
    """Return the number of operations in a step's matrix products, 2 m n k for each.

    It counts the mathematics, not an implementation: weights that a backward pass recomputes
    count once, Fourier transforms not at all.
    """
    w = case.workload
    tokens = w.batch * w.length
    square = 2 * tokens * w.d_model * w.d_model
    across = 2 * tokens * w.length * w.d_model  # all heads: length x length by d_model in sum
    mixing = {
        "attention": 4 * square + 2 * across,  # Q, K, V, output; Q K^T and P V
        "dense_synthesizer": 3 * square + 2 * across,  # W1, value, output; hidden W2 and P V
        "fourier": 0,
    }[case.mixer]
    feed_forward = 2 * 2 * tokens * w.d_model * w.d_ff
    forward = w.layers * (mixing + feed_forward) + 2 * w.batch * w.d_model * CLASSES
    # The backward pass has two products of the same size for each, one per factor.
    return 3 * forward if case.kind == "train" else forward
