"""The memory of training steps above what a process has before them: npformer and PyTorch."""

import statistics
from importlib.metadata import version

from benchmarks.remote import printed
from benchmarks.results_files import markdown, write
from benchmarks.workloads import DROPOUTS, LONG4096, LONG8192, THREADS, M, S, X

SIDES = ("npformer", "torch")
WORKLOADS = (S, M, X, LONG4096, LONG8192)
STEPS = 5


def run():
    """Measure each case in two fresh processes, one after the other."""
    figures = []
    for workload in WORKLOADS:
        for dropout in DROPOUTS:
            peaks = {side: peak_above_start(side, workload, dropout) for side in SIDES}
            figures.append(
                {
                    "workload": workload.name,
                    "dropout": dropout,
                    "above_mib": peaks,
                    "estimated_mib": estimate(workload, dropout),
                }
            )
            print(figures[-1], flush=True)
    write("memory", figures, table(figures), torch=version("torch"), threads=THREADS)


def peak_above_start(side, workload, dropout):
    """Return the peak of some steps with attention above the start, in MiB."""
    told = printed("benchmarks.alone", "steps", side, workload.name, "attention", dropout, STEPS)
    return told["above_mib"]


def estimate(workload, dropout):
    """Return what `npformer.step_memory` says of such a step, in MiB, without computing it."""
    told = printed("benchmarks.alone", "estimate", workload.name, "attention", dropout)
    return told["estimated_mib"]


def table(figures):
    """Return a row for each case, and the median quotient."""
    quotients = [f["above_mib"]["npformer"] / f["above_mib"]["torch"] for f in figures]
    rows = [
        (
            f"{f['workload']}, dropout {f['dropout']:g}",
            *f["above_mib"].values(),
            f"{quotient:.2f}",
            f.get("estimated_mib", ""),
        )
        for f, quotient in zip(figures, quotients, strict=True)
    ]
    heads = (
        "attention, training",
        "npformer, MiB",
        "PyTorch, MiB",
        "npformer / PyTorch",
        "estimate, MiB",
    )
    return (
        f"{markdown(heads, rows)}\n\n"
        "The peak of resident memory in five training steps, above what the process had before the "
        "first, with its libraries imported, its loops compiled and its model built: what the "
        "backward pass needs, gradients, and Adam's moments. PyTorch runs its fused attention and "
        "Adam. The estimate is that of `npformer.step_memory`, which computes nothing. "
        f"The median of the quotients is {statistics.median(quotients):.2f}."
    )
