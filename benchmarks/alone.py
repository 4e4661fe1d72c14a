"""One measurement in a fresh process: `python -m benchmarks.alone`, started by `cpu`.

It prints JSON. Start-up time and peak memory are measured before anything else is imported.
"""

import json
import sys
import time
from pathlib import Path


def import_of(module):
    """Return the seconds that an import takes."""
    began = time.perf_counter()
    __import__(module)
    return {"seconds": time.perf_counter() - began}


def start_of(side):
    """Return the seconds to import, build S with attention, and run the first training step."""
    began = time.perf_counter()
    from benchmarks.workloads import Case, S

    case = Case("train", S, "attention")
    if side == "npformer":
        from benchmarks.ours import Ours

        Ours(case).train()
    else:
        peer_step(case, "fused", "fused", side == "torch.compile")()
    return {"seconds": time.perf_counter() - began}


def memory_of(side, workload, mixer, dropout, steps, variant="", optimizer=""):
    """Return the peak memory after the import and after some training steps, in MiB."""
    from benchmarks.workloads import WORKLOADS, Case

    case = Case("train", WORKLOADS[workload], mixer, dropout=float(dropout))
    import_side(side)
    imported = peak_mib()
    step = training_step_of(side, case, variant, optimizer)
    for _ in range(int(steps)):
        step()
    return {"import_mib": imported, "peak_mib": peak_mib()}


def steps_of(side, workload, mixer, dropout, steps):
    """Return the memory before some training steps and their peak above it, in MiB; Linux only.

    What is imported, loaded and compiled once is there before: a model of the same layers takes two
    steps on a small batch first. Weights are there, too; gradients and Adam's moments are not.
    """
    import gc
    from dataclasses import replace

    from benchmarks.workloads import WORKLOADS, Case

    large = WORKLOADS[workload]
    small = replace(large, batch=min(2, large.batch), length=min(large.length, 1024))
    import_side(side)
    small_step = training_step_of(side, Case("train", small, mixer, dropout=float(dropout)))
    for _ in range(2):
        small_step()
    del small_step
    step = training_step_of(side, Case("train", large, mixer, dropout=float(dropout)))
    gc.collect()
    return_free_memory()
    before = status_of("self", "VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for _ in range(int(steps)):
        step()
    above = peak_of("self") - before
    return {"before_mib": round(before / 1024), "above_mib": round(above / 1024)}


def estimate_of(workload, mixer, dropout):
    """Return what `npformer.step_memory` says of a training step, in MiB."""
    import npformer as nf
    from benchmarks.ours import classifier
    from benchmarks.workloads import WORKLOADS, Case, batches

    case = Case("train", WORKLOADS[workload], mixer, dropout=float(dropout))
    x, y = batches(case.workload)[0]
    report = nf.step_memory(classifier(case), x, y, micro_batches=())
    return {"estimated_mib": round(report.peak / 2**20)}


def import_side(side):
    """Import what the steps of npformer, or of PyTorch, need."""
    if side == "npformer":
        import benchmarks.ours  # noqa: F401 (npformer itself, too)
    else:
        import torch._dynamo  # noqa: F401 (its optimizers import it)


def training_step_of(side, case, variant="fused", optimizer="fused"):
    """Return a training step of npformer, or of one of PyTorch's variants with an optimizer."""
    if side == "npformer":
        from benchmarks.ours import Ours

        return Ours(case).train
    return peer_step(case, variant, optimizer)


def return_free_memory():
    """Ask the C library to give what was freed back to the system."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def peer_step(case, variant, optimizer, compiled=False):
    """Return a training step of one of PyTorch's variants, with its own weights."""
    from benchmarks.peers.classifiers import Classifier, Device, training_step

    Device()
    return training_step(case, Classifier(case, variant), optimizer, compiled)


def peak_mib():
    """Return this process's peak of resident memory.

    On Linux this is VmHWM, because `ru_maxrss` starts with the parent's memory.
    """
    if Path("/proc/self/status").is_file():
        return round(peak_of("self") / 1024)
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def peak_of(pid):
    """Return the peak of resident memory of one process, in KiB."""
    return status_of(pid, "VmHWM")


def status_of(pid, name):
    """Return a number of KiB that Linux tells about a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


if __name__ == "__main__":
    measures = {
        "import": import_of,
        "start": start_of,
        "memory": memory_of,
        "steps": steps_of,
        "estimate": estimate_of,
    }
    print(json.dumps(measures[sys.argv[1]](*sys.argv[2:])))
