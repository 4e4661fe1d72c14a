"""Are convolutions of kernel size 1 or linear maps faster? At one size, and on a grid."""

from functools import partial
from importlib.metadata import version

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.results_files import markdown, write
from benchmarks.sides import both, logits_apart, timing
from benchmarks.timing import timed
from npformer.core.inputs import Sequences
from npformer.engine.team import Team
from npformer.models.batch import Batch
from npformer.models.losses import BinaryCrossEntropy

ASKED = (512, 32, 512)  # batch, positions, features: those of the published benchmark
GRID = [(b, n, d) for b in (128, 512) for n in (8, 32, 128) for d in (256, 512)]
SIDES = OURS, THEIRS = "npformer", "PyTorch"
KINDS = ("linear", "conv1d")


class Ours:
    """The published model with linear maps and with convolutions, of the same weights."""

    def __init__(self, batch, length, width, backend="numpy", precision="float32"):
        nf.use_precision(precision, backend)
        arrays = workloads.vectors(batch, length, width)
        self.x, self.y = (nf.asarray(array, backend) for array in arrays)
        self.models, self.teams, self.optimizers = {}, {}, {}
        for ffn in KINDS:
            model = nf.published.benchmark_model(length, width, 4 * width, ffn=ffn)
            model.to(backend)
            self.models[ffn] = model
            self.teams[ffn] = Team(model, workers="auto", loss=BinaryCrossEntropy())
            self.optimizers[ffn] = nf.Adam(model.parameters(), eps=workloads.KERAS_EPSILON)

    def weights(self):
        """Return copies of all weights of the linear maps, under npformer's names."""
        named = self.models["linear"].parameters()
        return {name: nf.to_numpy(w).copy() for name, w in named.items()}

    def logits(self):
        """Return both models' logits."""
        models = self.models.items()
        return {ffn: nf.to_numpy(nf.fast(model)(self.x)).copy() for ffn, model in models}

    def train(self, ffn):
        """Run one training step."""
        batch = Batch((Sequences(self.x),), self.y, counts=np.ones(len(self.x)))
        _, gradients = self.teams[ffn].step(batch, generator=None)
        self.optimizers[ffn].step(gradients)

    def turn(self, ffn, n):
        """Return the seconds per step, over n steps; reading a weight waits for a GPU."""
        flat = self.models[ffn].parameters().flat
        return timed(lambda: self.train(ffn), n, lambda: nf.to_numpy(flat[:1]))


def measure(sizes, kinds, on=("numpy", "cpu"), precision="float32", agree=1e-4, **rounds):
    """Time training steps in turn; return the figures. A kind may be "linear, compiled"."""
    here = "benchmarks.ffn", "Ours", *sizes, on[0], precision
    there = "benchmarks.peers.feed_forward", "Peer", *sizes, on[1], precision
    with both(here, there) as (ours, theirs):
        logits = ours.call("logits")
        for found in (logits, theirs.call("logits")):
            logits_apart(logits["linear"], found, agree)
        problem = theirs.call("compile") if "linear, compiled" in kinds[THEIRS] else None
        turns = {
            f"{name}, {kind}": partial(side.call, "turn", kind)
            for name, side in ((OURS, ours), (THEIRS, theirs))
            for kind in kinds[name]
            if not (problem and "compiled" in kind)
        }
        found = timing(turns, (ours.pid, theirs.pid), warm_up=2, **rounds)
    named = dict(zip(("batch", "length", "width"), sizes, strict=True))
    return {"sizes": named, "not_compiled": problem} | found


def run():
    asked = measure(ASKED, {OURS: KINDS, THEIRS: KINDS}, seconds=40.0)
    print(asked, flush=True)
    grid, kinds = [], {OURS: KINDS, THEIRS: KINDS[:1]}
    for sizes in GRID:
        grid.append(measure(sizes, kinds, seconds=6.0, least=5, most=15))
        print(grid[-1], flush=True)
    figures = {"asked": asked, "grid": grid}
    write(
        "ffn",
        figures,
        table(figures),
        torch=version("torch"),
        threads=workloads.THREADS,
    )


def share(figures, one, other):
    """Return the ratio of two medians, in two digits."""
    return f"{figures['ms'][one]['median'] / figures['ms'][other]['median']:.2f}"


def table(figures):
    """Return the times of all four, and ratios with one row per size."""
    asked, grid = figures["asked"], figures["grid"]
    batch, length, width = asked["sizes"].values()
    of_four = markdown(
        (
            f"batch {batch}, {length} positions, {width} -> {4 * width} -> {width}",
            "step, ms",
            "quartiles",
            "/ npformer, linear",
            "/ PyTorch, linear",
        ),
        [
            (
                name,
                f"{ms['median']:.0f}",
                f"{ms['q1']:.0f} to {ms['q3']:.0f}",
                *(share(asked, name, f"{side}, linear") for side in SIDES),
            )
            for name, ms in asked["ms"].items()
        ],
    )
    pairs = (
        (f"{OURS}, conv1d", f"{OURS}, linear"),
        (f"{OURS}, linear", f"{THEIRS}, linear"),
        (f"{OURS}, conv1d", f"{THEIRS}, linear"),
    )
    of_sizes = markdown(
        (
            "batch",
            "length",
            "width",
            "npformer, linear: ms",
            "conv1d / linear",
            "linear / PyTorch's",
            "conv1d / PyTorch's linear",
        ),
        [
            (
                *each["sizes"].values(),
                f"{each['ms'][f'{OURS}, linear']['median']:.1f}",
                *(share(each, *two) for two in pairs),
            )
            for each in grid
        ],
        left=0,
    )
    shares = [each["others_share"] or 0.0 for each in grid]
    how = (
        "A training step of a position-wise feed-forward network (relu, four times as wide "
        "inside), flatten, one logit: forward, loss, backward, Adam. Medians of interleaved "
        "rounds, float32; below 1 the first is faster. Other programs took at most "
        f"{100 * max(shares):.0f} % of the machine."
    )
    return f"{of_four}\n\n{of_sizes}\n\n{how}"
