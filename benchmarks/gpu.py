"""npformer on CuPy and PyTorch on the same GPU: training steps, memory, and the `ffn` question.

Each side is a separate process; they take turns. All weights, batches and results are on the GPU,
and a turn starts and ends when the GPU has nothing left to do. `--dry-run` runs everything on the
CPU with tiny sizes, to see that it works.
"""

import argparse
import itertools
import json
import re
from dataclasses import replace
from functools import partial
from importlib.metadata import version

from benchmarks import ffn
from benchmarks.jobs import add_options, in_one_line, pending, wanted
from benchmarks.results_files import RESULTS, machine, markdown, show
from benchmarks.sides import QUICK, both, prepare, timing
from benchmarks.workloads import MIXERS, Case, M, S, Workload, X

BERT = Workload("BERT", 64, 512, 768, 3072, 12, 12)  # the sizes of BERT base, our 1000 tokens
TINY = {"batch": 4, "length": 8, "d_model": 24, "d_ff": 32, "layers": 1}
AGREE = {"float32": (1e-3, 1e-3), "tf32": (5e-2, 2e-2)}
"""How far logits and losses may be apart, by the precision of products."""

ROUNDS = {"seconds": 10.0}
PARTIAL = RESULTS / "gpu.partial.json"


def cases():
    """Yield what is trained: small models without dropout, the large one as usual."""
    for workload in (S, M, X):
        for mixer in MIXERS:
            yield Case("train", workload, mixer)
    for mixer in ("attention", "fourier"):
        yield Case("train", BERT, mixer, dropout=0.1)


def compare(case, precision, options):
    """Time both sides on one case, in turn; return the figures."""
    here = "benchmarks.ours", "Ours", case, options.backend, precision
    there = "benchmarks.peers.classifiers", "Peer", case, options.device, precision
    with both(here, there) as (ours, theirs):
        agree = AGREE[precision]
        figures = {"precision": precision}
        figures |= prepare(ours, theirs, case, options.compile, agree, held=True)
        turns = {
            "npformer": partial(ours.call, "turn"),
            "npformer, without kernels": partial(ours.call, "plain_turn"),
            "eager": partial(theirs.call, "turn", "eager"),
        }
        if not figures["not_compiled"]:
            turns["compiled"] = partial(theirs.call, "turn", "compiled")
        rounds = QUICK if options.quick else ROUNDS
        return figures | timing(turns, (ours.pid, theirs.pid), **rounds)


def compare_ffn(sizes, precision, options):
    """Time the published benchmark's feed-forward network, in turn; return the figures."""
    compiled = ("linear, compiled",) if options.compile else ()
    kinds = {ffn.OURS: ffn.KINDS, ffn.THEIRS: (*ffn.KINDS, *compiled)}
    on = options.backend, options.device
    rounds = QUICK if options.quick else ROUNDS
    found = ffn.measure(sizes, kinds, on, precision, AGREE[precision][0], **rounds)
    return {"precision": precision} | found


def missing():
    """Return in one line what is missing on this machine, or None."""
    from npformer.core import BackendUnavailableError, get_backend

    try:
        get_backend("cupy")
    except BackendUnavailableError as problem:
        return str(problem)
    try:
        import torch
    except ImportError as problem:
        return f"PyTorch is needed to compare with: {problem}; python -m pip install torch"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} sees no GPU; install a build for CUDA"
    return None


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu", description=__doc__)
    add_options(parser)
    parser.add_argument("--quick", action="store_true", help="few rounds; nothing is written")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument(
        "--dry-run", action="store_true", help="tiny sizes on the CPU; nothing is written"
    )
    options = parser.parse_args(arguments)
    options.backend, options.device = ("numpy", "cpu") if options.dry_run else ("cupy", "cuda")
    options.quick = options.quick or options.dry_run
    return options


def jobs(options):
    """Return {name: function} of the jobs that --only selects by words of their names."""
    precisions = list(AGREE)[: 1 if options.dry_run else None]
    found = {}
    for case, precision in itertools.product(cases(), precisions):
        name = f"{case.workload.name} {case.mixer} {precision}"
        if options.dry_run:
            case = replace(case, workload=replace(case.workload, **TINY))
        found[name] = partial(compare, case, precision, options)
    for precision in precisions:
        sizes = (4, 3, 8) if options.dry_run else ffn.ASKED
        found[f"ffn {precision}"] = partial(compare_ffn, sizes, precision, options)
    return {name: job for name, job in found.items() if wanted(name, options.only)}


def run(arguments=()):
    options = parse(arguments)
    if not options.dry_run and (problem := missing()):
        raise SystemExit(f"python -m benchmarks gpu: {problem}")
    everything = jobs(options)
    kept = json.loads(PARTIAL.read_text()) if options.resume and PARTIAL.is_file() else {}
    done = {name: found for name, found in kept.items() if "failed" not in found}
    for name, measure in pending(everything, done, options):
        try:
            done[name] = measure()
        except Exception as problem:  # out of memory, or a version that lacks something
            if options.dry_run:
                raise
            done[name] = {"failed": in_one_line(problem)}
        print(in_short(name, done[name]), flush=True)
        if not options.quick:
            PARTIAL.write_text(json.dumps(done) + "\n")
    if not everything.keys() <= done.keys():
        return
    measured = {name: done[name] for name in everything if "failed" not in done[name]}
    figures = {
        "cases": [f for name, f in measured.items() if not name.startswith("ffn ")],
        "ffn": [f for name, f in measured.items() if name.startswith("ffn ")],
        "failed": {n: done[n]["failed"] for n in everything if "failed" in done[n]},
    }
    table = report(figures)
    if options.quick or options.only:
        print(f"\n{table}\n\nnot written, because --quick or --only was given")
        return
    keep(figures, table)
    PARTIAL.unlink()


def in_short(name, figures):
    """Return one line about what has just been measured."""
    if "failed" in figures:
        return f"{name}: {figures['failed']}"
    return f"{name}: " + ", ".join(f"{who} {ms['median']} ms" for who, ms in figures["ms"].items())


def keep(figures, table):
    """Write the results under the device's name, and the table into docs/gpu.md."""
    import cupy

    from npformer.core import get_backend

    gpu = dict(get_backend("cupy").details())
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    on = machine() | {"torch": version("torch"), "gpu": gpu}
    file = "gpu-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{file}.json").write_text(
        json.dumps({"machine": on, "figures": figures}, indent=2) + "\n"
    )
    source = (
        f"Written by `python -m benchmarks gpu` on {on['date']}, on one {name}, driver "
        f"{gpu['driver']}, CUDA {gpu['CUDA']}, CuPy {gpu['cupy']}, PyTorch {on['torch']}, "
        f"Python {on['python']}."
    )
    (RESULTS / f"{file}.md").write_text(f"{table}\n\n{source}\n")
    show("gpu", f"{table}\n\n{source}\n")
    print(f"{table}\n\n{source}")


def report(figures):
    """Return both tables, and what could not be measured."""
    parts = [
        case_table(figures["cases"]) if figures["cases"] else "",
        ffn_table(figures["ffn"]) if figures["ffn"] else "",
        "\n".join(f"Not measured: {n}: {why}." for n, why in figures["failed"].items()),
    ]
    return "\n\n".join(filter(None, parts))


def quartiles(ms):
    """Return the cells of a time."""
    return f"{ms['median']:.4g}", f"{ms['q1']:.4g} to {ms['q3']:.4g}"


def case_table(found):
    """Return times, ratios and memory: one row per model and precision."""
    heads = (
        "training step",
        "precision",
        "npformer, ms",
        "quartiles",
        "without kernels, ms",
        "/ eager",
        "/ compiled",
        "memory, MiB",
        "PyTorch's",
    )
    rows, sizes = [], {}
    for f in found:
        case, ms = f["case"], f["ms"]
        w = case["workload"]
        rows.append(
            (
                f"{w['name']}, {case['mixer']}, dropout {case['dropout']:g}",
                f["precision"],
                *quartiles(ms["npformer"]),
                f"{ms['npformer, without kernels']['median']:.4g}",
                *(
                    f"{f['ratio'][who]['of_medians']:.2f}" if who in f["ratio"] else "not compiled"
                    for who in ("eager", "compiled")
                ),
                *f["held_mib"].values(),
            )
        )
        sizes[w["name"]] = (
            f"{w['name']} is batch {w['batch']}, length {w['length']}, d_model {w['d_model']}, "
            f"d_ff {w['d_ff']}, {w['heads']} heads, {w['layers']} layers"
        )
    reasons = sorted({f["not_compiled"] for f in found if f["not_compiled"]})
    return "\n".join(
        [
            markdown(heads, rows, left=2),
            "",
            "Medians of interleaved rounds: forward, loss, backward, Adam, with everything on the "
            "GPU. Ratios are npformer's step by PyTorch's: below 1 npformer is faster. PyTorch's "
            "fastest way to write each model is compared. Memory is what a side's pool holds after "
            "three of its own steps, PyTorch's in eager mode; cuBLAS's workspace is in PyTorch's "
            "pool and beside CuPy's.",
            f"{'; '.join(sizes.values())}.",
            *(f"Not compiled: {reason}." for reason in reasons),
        ]
    )


def ffn_table(found):
    """Return the times of the published benchmark's feed-forward network."""
    batch, length, width = found[0]["sizes"].values()
    title = f"batch {batch}, {length} positions, {width} -> {4 * width} -> {width}"
    rows = [(who, f["precision"], *quartiles(ms)) for f in found for who, ms in f["ms"].items()]
    return markdown((title, "precision", "step, ms", "quartiles"), rows, left=2)
