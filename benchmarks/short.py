"""One short sample, or a few, predicted by npformer, PyTorch and onnxruntime in turn.

PyTorch runs as installed and held to one thread, because threads do not pay for so little work.
"""

from dataclasses import replace

from benchmarks.remote import Remote
from benchmarks.results_files import markdown, write
from benchmarks.sides import prepare, timing
from benchmarks.workloads import MIXERS, Case, S

SHAPES = ((1, 16), (1, 64), (1, 256), (2, 64), (4, 64))
"""Samples, and tokens of each."""

SECONDS = 1.0
PEERS = {
    "PyTorch": "PyTorch",
    "one thread": "PyTorch with one thread",
    "onnxruntime": "onnxruntime",
}
"""What npformer's time is divided by, and the names in the table."""

NAMES = {"attention": "attention", "dense_synthesizer": "synthesizer", "fourier": "Fourier"}


def measure(case):
    """Time all sides on one case; return the times and ratios."""
    peer = "benchmarks.peers.classifiers", "Peer", case
    with (
        Remote("benchmarks.ours", "Ours", case) as ours,
        Remote(*peer) as torch,
        Remote(*peer) as torch_of_one_thread,
        Remote("benchmarks.peers.onnx_session", "Peer", case) as onnx,
    ):
        torch_of_one_thread.call("use_threads", 1)
        peers = [torch, torch_of_one_thread]
        weights = ours.call("weights")
        for side in peers:
            side.call("load", weights)
        figures = prepare(ours, torch, case, compiled=False, others=[torch_of_one_thread, onnx])
        turns = {
            "npformer": lambda n: ours.call("turn", n),
            "PyTorch": lambda n: torch.call("turn", "eager", n),
            "one thread": lambda n: torch_of_one_thread.call("turn", "eager", n),
            "onnxruntime": lambda n: onnx.call("turn", n),
        }
        pids = {side.pid for side in (ours, onnx, *peers)}
        return figures | timing(turns, pids, seconds=SECONDS)


def row_of(case, figures):
    """Return the cells of a case."""
    samples = "1 sample" if case.workload.batch == 1 else f"{case.workload.batch} samples"
    microseconds = 1e3 * figures["ms"]["npformer"]["median"]
    ratios = [f"{figures['ratio'][side]['of_medians']:.2f}" for side in PEERS]
    return NAMES[case.mixer], samples, case.workload.length, f"{microseconds:.0f}", *ratios


def run():
    """Measure each mixer and shape, and write benchmarks/results/short.md and .json."""
    rows, figures = [], []
    for mixer in MIXERS:
        for batch, length in SHAPES:
            case = Case("predict", replace(S, batch=batch, length=length), mixer)
            figures.append(measure(case))
            rows.append(row_of(case, figures[-1]))
            print(*rows[-1], flush=True)
    heads = ["mixer", "", "tokens", "npformer, µs", *(f"/ {name}" for name in PEERS.values())]
    about = (
        "Token ids to labels by a model of S (d_model 64, two layers), in float32. Below 1, "
        "npformer takes less time. Medians of rounds in turn, each side in a process of its own."
    )
    write("short", figures, f"{markdown(heads, rows)}\n\n{about}")
