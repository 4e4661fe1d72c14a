"""Are convolutions of kernel size 1 or linear maps faster? At one size, and on a grid."""

from contextlib import ExitStack
from functools import partial
from importlib.metadata import version

import numpy as np

from benchmarks import workloads
from benchmarks.remote import Remote
from benchmarks.results_files import write
from benchmarks.timing import Others, interleave, ratio, summary

ASKED = (512, 32, 512)  # batch, positions, features: those of the published benchmark
GRID = [(b, n, d) for b in (128, 512) for n in (8, 32, 128) for d in (256, 512)]
SIDES = OURS, THEIRS = "npformer", "PyTorch"
LOGITS_AGREE = 1e-4


def measure(sizes, kinds, **rounds):
    """Time training steps in turn; return the figures."""
    with ExitStack() as both:
        ours = both.enter_context(Remote("benchmarks.ffn_ours", "Ours", *sizes))
        theirs = both.enter_context(Remote("benchmarks.ffn_peers", "Peer", *sizes))
        theirs.call("load", ours.call("weights"))
        check(ours.call("logits"), theirs.call("logits"))
        turns = {
            f"{name}, {kind}": partial(side.call, "turn", kind)
            for name, side in ((OURS, ours), (THEIRS, theirs))
            for kind in kinds[name]
        }
        with Others(ours.pid, theirs.pid) as others:
            taken = interleave(turns, warm_up=2, **rounds)
    return {
        "sizes": dict(zip(("batch", "length", "width"), sizes, strict=True)),
        "others_share": others.share,
        "rounds": len(taken[f"{OURS}, linear"]),
        "ms": {name: summary(seconds) for name, seconds in taken.items()},
        "ratio": {
            f"{a} / {b}": ratio(taken[a], taken[b])
            for a in taken
            for b in (f"{OURS}, linear", f"{THEIRS}, linear")
        },
    }


def check(ours, theirs):
    """Raise an error unless all four models compute the same."""
    expected = ours["linear"]
    for logits in (*ours.values(), *theirs.values()):
        apart = float(np.abs(logits - expected).max())
        if not apart <= LOGITS_AGREE * max(1.0, float(np.abs(expected).max())):
            raise ValueError(f"logits are {apart:.1e} apart")


def run():
    both = ("linear", "conv1d")
    asked = measure(ASKED, {OURS: both, THEIRS: both}, seconds=40.0)
    print(asked, flush=True)
    grid = []
    for sizes in GRID:
        grid.append(measure(sizes, {OURS: both, THEIRS: both[:1]}, seconds=6.0, least=5, most=15))
        print(grid[-1], flush=True)
    write(
        "ffn",
        {"asked": asked, "grid": grid},
        f"{asked_table(asked)}\n\n{grid_table(grid)}",
        torch=version("torch"),
        threads=workloads.THREADS,
    )


def asked_table(figures):
    """Return the times of all four."""
    batch, length, width = ASKED
    lines = [
        f"| batch {batch}, {length} positions, {width} -> {4 * width} -> {width} | step, ms "
        "| quartiles | / npformer, linear | / PyTorch, linear |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, ms in figures["ms"].items():
        of = [f"{figures['ratio'][f'{name} / {side}, linear']['of_medians']:.2f}" for side in SIDES]
        lines.append(
            f"| {name} | {ms['median']:.0f} | {ms['q1']:.0f} to {ms['q3']:.0f} | {' | '.join(of)} |"
        )
    return "\n".join(lines)


def grid_table(grid):
    """Return ratios: one row per size."""
    pairs = (
        (f"{OURS}, conv1d", f"{OURS}, linear"),
        (f"{OURS}, linear", f"{THEIRS}, linear"),
        (f"{OURS}, conv1d", f"{THEIRS}, linear"),
    )
    lines = [
        "| batch | length | width | npformer, linear: ms | conv1d / linear "
        "| linear / PyTorch's | conv1d / PyTorch's linear |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for figures in grid:
        sizes = " | ".join(str(n) for n in figures["sizes"].values())
        ratios = " | ".join(f"{figures['ratio'][f'{a} / {b}']['of_medians']:.2f}" for a, b in pairs)
        lines.append(f"| {sizes} | {figures['ms'][f'{OURS}, linear']['median']:.1f} | {ratios} |")
    shares = [figures["others_share"] or 0.0 for figures in grid]
    lines += [
        "",
        "A training step of a position-wise feed-forward network (relu, four times as wide "
        "inside), flatten, one logit: forward, loss, backward, Adam. Medians of interleaved "
        "rounds, float32; below 1 the first is faster. Other programs took at most "
        f"{100 * max(shares):.0f} % of the machine.",
    ]
    return "\n".join(lines)
