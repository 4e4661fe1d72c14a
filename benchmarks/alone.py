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
    if side == "npformer":
        from benchmarks.ours import Ours

        imported = peak_mib()
        step = Ours(case).train
    else:
        import torch._dynamo  # noqa: F401 (its optimizers import it)

        imported = peak_mib()
        step = peer_step(case, variant, optimizer)
    for _ in range(int(steps)):
        step()
    return {"import_mib": imported, "peak_mib": peak_mib()}


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
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    what = {"import": import_of, "start": start_of, "memory": memory_of}[sys.argv[1]]
    print(json.dumps(what(*sys.argv[2:])))
