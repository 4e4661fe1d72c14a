"""npformer, PyTorch and JAX on a CPU: training, prediction, latency, start-up, memory.

A full run takes about half an hour, so the result of every job is saved in
benchmarks/results/cpu.partial.json. `--resume` continues from there, `--minutes` sets a limit. The
tables keep the figures of other processors.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from benchmarks import cpu_report, workloads
from benchmarks.jobs import add_options, pending, wanted
from benchmarks.peers import intel
from benchmarks.remote import Remote, printed
from benchmarks.results_files import RESULTS, ROOT, machine, show
from benchmarks.sides import QUICK, both, prepare, timing
from benchmarks.timing import sgemm_peak, significant
from benchmarks.workloads import DROPOUTS, MIXERS, Case, L, M, S, X

KINDS = {"train": "training", "predict": "prediction"}
PARTIAL, KEPT = RESULTS / "cpu.partial.json", RESULTS / "cpu.json"
SECONDS = {"train": 5.0, "predict": 2.0, "latency": 1.0}


# What there is to measure -------------------------------------------------------------------------


def cases():
    """Yield (section, case) for everything that is timed against PyTorch."""
    for workload in (S, M, X):
        for mixer in MIXERS:
            for rate in DROPOUTS:
                yield "train", Case("train", workload, mixer, dropout=rate)
    for workload, mixers in ((L, MIXERS), (workloads.L4096, MIXERS[:1])):
        for mixer in mixers:
            yield "train", Case("train", workload, mixer, dropout=DROPOUTS[-1])
    for workload, mixers in (*((w, MIXERS) for w in (S, M, X, L)), (workloads.L4096, MIXERS[:1])):
        for mixer in mixers:
            yield "predict", Case("predict", workload, mixer)
    for workload in (S, M, L):
        for mixer in MIXERS:
            for kind in ("train", "predict"):
                yield "latency", Case(kind, replace(workload, batch=1), mixer)
    yield "latency", Case("train", workloads.L8192, MIXERS[0])


def jobs(options):
    """Return {name: function} of all jobs; --only selects by words of their names."""
    found = {}
    for section, case in cases():
        words = [section, case.workload.name]
        if section == "latency":
            words += [f"batch{case.workload.batch}", KINDS[case.kind]]
        words.append(case.mixer)
        if section == "train":
            words.append(f"dropout{case.dropout:g}")
        found[" ".join(words)] = partial(compare, section, case, options)
    found["startup"] = partial(startup, options)
    for workload, mixers in (
        *((w, MIXERS) for w in (S, M, X, L)),
        (workloads.L4096, MIXERS[:1]),
        (workloads.L8192, MIXERS[:1]),
    ):
        for mixer in mixers:
            found[f"memory {workload.name} {mixer}"] = partial(memory, workload, mixer)
    return found


# How it is measured -------------------------------------------------------------------------------


OURS = "benchmarks.ours", "Ours"
PEER = "benchmarks.peers.classifiers", "Peer"
JAX = "benchmarks.peers.jax_classifier", "Peer"


def compare(section, case, options, kept):
    """Time npformer, PyTorch and, in training, other peers on one case, in turn."""
    rounds = QUICK if options.quick else {"seconds": SECONDS[section]}
    trained = section == "train"
    with (
        both(("benchmarks.ours", "Ours", case), (*PEER, case)) as (ours, theirs),
        ExitStack() as stack,
    ):
        others, weights = {}, ours.call("weights")
        if options.intel:
            others["equal"] = stack.enter_context(Remote(*PEER, case, **options.intel))
        if trained and find_spec("jax") is not None and find_spec("optax") is not None:
            others["JAX"] = stack.enter_context(
                Remote("benchmarks.peers.jax_classifier", "Peer", case)
            )
        for other in others.values():
            other.call("load", weights)
        figures = {"section": section, "matrix_flops": workloads.matrix_flops(case)}
        compiled = options.compile and trained
        figures |= prepare(ours, theirs, case, compiled, others=list(others.values()))
        sides = {"npformer": ours, "eager": theirs}
        if not figures["not_compiled"]:
            sides["compiled"] = theirs
        sides |= others
        if trained:
            sides["passes"] = stack.enter_context(Remote(*OURS, case, NPFORMER_LOOPS="0"))

        def timed(turn):
            words = {who: (turn, "compiled" if who == "compiled" else "eager") for who in sides}
            words |= dict.fromkeys(("npformer", "passes"), (turn,))
            turns = {who: partial(side.call, *words[who]) for who, side in sides.items()}
            return timing(turns, {side.pid for side in sides.values()}, **rounds)

        figures |= timed("turn")
        if section == "predict":
            batches = workloads.DATA_SET[case.workload.name]
            figures["all"] = timed("turn_of_all") | {"batches": batches}
    return figures


def products(options):
    """Return the rates of matrix products of NumPy and PyTorch, in GFLOP/s."""
    found, torches = {"NumPy": sgemm_peak(workloads.THREADS)}, {"PyTorch": {}}
    if options.intel:
        torches["PyTorch with Intel's kernels"] = options.intel
    for name, variables in torches.items():
        with Remote(*PEER, Case("predict", S, "attention"), **variables) as torch:
            found[name] = torch.call("products")
    return found


def alone(*arguments, **environment):
    """Return what benchmarks/alone.py prints, in a fresh process."""
    return printed("benchmarks.alone", *arguments, **environment)


def startup(options, kept):
    """Time imports and first steps, each in a fresh process, in turn."""
    runs = {f"import {m}": ("import", m) for m in ("numpy", "npformer", "torch")}
    runs |= {f"first step, {side}": ("start", side) for side in ("npformer", "torch")}
    taken = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as compiled:
        for i in range(3 if options.quick else 6):
            for name, arguments in runs.items():
                seconds = alone(
                    *arguments, PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=compiled
                )["seconds"]
                if i > 0:  # the first time writes the bytecode, as an installation does
                    taken[name].append(seconds)
    if options.compile:
        name = "first step, torch.compile"
        taken[name] = []
        for _ in range(1 if options.quick else 3):
            with tempfile.TemporaryDirectory() as empty:  # nothing in it was compiled before
                seconds = alone("start", "torch.compile", TORCHINDUCTOR_CACHE_DIR=empty)["seconds"]
            taken[name].append(seconds)
    return {
        "section": "startup",
        "seconds": {name: significant(statistics.median(s)) for name, s in taken.items()},
        "runs": {name: len(s) for name, s in taken.items()},
    }


def memory(workload, mixer, kept):
    """Read the peak memory of training with gelu and dropout, each side in a fresh process."""
    case = Case("train", workload, mixer, dropout=0.1)
    steps = 1 if workload is workloads.L8192 else 3
    asked = (workload.name, mixer, case.dropout, steps)
    variant, adam = best_variant(case, kept)
    return {
        "section": "memory",
        "case": case.described(),
        "steps": steps,
        "variant": variant,
        "npformer": alone("memory", "npformer", *asked),
        "torch": alone("memory", "torch", *asked, variant, adam),
    }


def best_variant(case, kept):
    """Return the variant that the timed run of this case chose; choose now if there was none."""
    for figures in kept.values():
        if figures.get("case") == case.described() and figures["section"] == "train":
            return figures["variant"], figures["adam"]
    with Remote(*PEER, case) as theirs:
        chosen = theirs.call("choose")
    return chosen["variant"], chosen["adam"]


# The run ------------------------------------------------------------------------------------------


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks cpu", description=__doc__)
    add_options(parser)
    parser.add_argument("--quick", action="store_true", help="few rounds; nothing is saved")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write unfinished results too, and list the missing jobs",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the jobs")
    return parser.parse_args(arguments)


def run(arguments=()):
    options = parse(arguments)
    everything = jobs(options)
    if options.list:
        print("\n".join(name for name in everything if wanted(name, options.only)))
        return
    with tempfile.TemporaryDirectory() as folder:
        options.intel = intel.environment(folder)
        measure_all(everything, options)


def measure_all(everything, options):
    state = {"jobs": {}}
    if options.resume and PARTIAL.is_file():
        state = json.loads(PARTIAL.read_text())
    state["products"] = products(options)
    print(state["products"])
    for name, measure in pending(everything, state["jobs"], options):
        state["jobs"][name] = measure(kept=state["jobs"]) | {"source": fingerprint()}
        keep(state, options)
        print(f"{name}: {cpu_report.in_short(state['jobs'][name])}", flush=True)
    finish(state, everything, options)


def fingerprint():
    """Return a short hash of npformer's source, which should be the same in all parts of a run."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "npformer").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def keep(state, options):
    """Save the results so far, so that another run can continue from there."""
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        PARTIAL.write_text(json.dumps(state) + "\n")


def finish(state, everything, options):
    """Write the results if all jobs are done; otherwise print those that there are."""
    state["jobs"] = {name: state["jobs"][name] for name in everything if name in state["jobs"]}
    state["machine"] = machine() | {"torch": version("torch"), "threads": workloads.THREADS}
    missing = [name for name in everything if name not in state["jobs"]]
    sources = sorted({figures["source"] for figures in state["jobs"].values()})
    if len(sources) > 1:
        print(f"warning: npformer changed during the run, {len(sources)} versions: {sources}")
    keeps = KEPT.is_file() and not options.quick
    runs = json.loads(KEPT.read_text()) if keeps else {}
    runs[cpu_report.processor(state["machine"])] = state
    blocks = cpu_report.blocks(runs)
    print("\n\n".join(blocks.values()))
    if options.quick or (missing and not options.write):
        print(f"\nnot written: {len(missing)} jobs of {len(everything)} are missing")
        return
    if missing:
        blocks["missing"] = f"Not measured yet: {', '.join(missing)}."
    KEPT.write_text(json.dumps(runs, indent=2) + "\n")
    show_all(blocks)
    if not missing:
        PARTIAL.unlink()


def show_all(blocks):
    """Write the tables beside the figures, and into README and docs."""
    text = "\n\n".join(text for name, text in blocks.items() if name != "summary")
    KEPT.with_suffix(".md").write_text(f"{text}\n")
    for name, block in {"cpu": text, **{f"cpu {name}": b for name, b in blocks.items()}}.items():
        show(name, f"{block}\n")
