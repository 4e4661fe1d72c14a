"""npformer and PyTorch on a CPU: training, prediction, latency, start-up, memory.

A full run takes about an hour, mostly for torch.compile, so the result of every job is saved in
benchmarks/results/cpu.partial.json. `--resume` continues from there, `--minutes` sets a limit.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
from dataclasses import replace
from functools import partial
from importlib.metadata import version

from benchmarks import cpu_report, workloads
from benchmarks.jobs import add_options, pending, wanted
from benchmarks.remote import Remote, printed
from benchmarks.results_files import RESULTS, ROOT, write
from benchmarks.sides import QUICK, both, prepare, timing
from benchmarks.timing import sgemm_peak, significant
from benchmarks.workloads import ACTIVATIONS, DROPOUTS, MIXERS, Case, L, M, S, X

KINDS = {"train": "training", "predict": "prediction"}
PARTIAL = RESULTS / "cpu.partial.json"
SECONDS = {"train": 5.0, "predict": 2.0, "latency": 1.0}


# What there is to measure -------------------------------------------------------------------------


def cases():
    """Yield (section, case) for everything that is timed against PyTorch."""
    for workload in (S, M, X):
        for mixer in MIXERS:
            for activation in ACTIVATIONS:
                for rate in DROPOUTS:
                    yield "train", Case("train", workload, mixer, activation, rate)
    for workload, mixers in ((L, MIXERS), (workloads.L4096, MIXERS[:1])):
        for mixer in mixers:
            for rate in DROPOUTS:
                yield "train", Case("train", workload, mixer, dropout=rate)
    for workload, mixers in (*((w, MIXERS) for w in (S, M, X, L)), (workloads.L4096, MIXERS[:1])):
        for mixer in mixers:
            yield "predict", Case("predict", workload, mixer)
    for workload in (S, M):
        for batch in (1, 2):
            for mixer in MIXERS:
                for kind in ("train", "predict"):
                    yield "latency", Case(kind, replace(workload, batch=batch), mixer)
    for kind in ("train", "predict"):
        for mixer in MIXERS:
            yield "latency", Case(kind, replace(L, batch=1), mixer)
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
            words += [case.activation, f"dropout{case.dropout:g}"]
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


PEER = "benchmarks.peers.classifiers", "Peer"


def compare(section, case, options, kept):
    """Time npformer, PyTorch and compiled PyTorch on one case, in turn; return the figures."""
    rounds = QUICK if options.quick else {"seconds": SECONDS[section]}
    with both(("benchmarks.ours", "Ours", case), (*PEER, case)) as (ours, theirs):
        figures = {"section": section, "matrix_flops": workloads.matrix_flops(case)}
        figures |= prepare(ours, theirs, case, options.compile)

        def timed(turn):
            peers = ["eager"] if figures["not_compiled"] else ["eager", "compiled"]
            turns = {"npformer": partial(ours.call, turn)}
            turns |= {who: partial(theirs.call, turn, who) for who in peers}
            return timing(turns, (ours.pid, theirs.pid), **rounds)

        figures |= timed("turn")
        if section == "predict":
            batches = workloads.DATA_SET[case.workload.name]
            figures["all"] = timed("turn_of_all") | {"batches": batches}
    return figures


alone = partial(printed, "benchmarks.alone")


def startup(options, kept):
    """Time imports and first steps, each in a fresh process, in turn."""
    runs = {f"import {m}": ("import", m) for m in ("numpy", "npformer", "torch")}
    runs |= {f"first step, {side}": ("start", side) for side in ("npformer", "torch")}
    taken = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as compiled:
        installed = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        for i in range(3 if options.quick else 6):
            for name, arguments in runs.items():
                seconds = alone(*arguments, **installed)["seconds"]
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
    state = {"peaks": [], "jobs": {}}
    if options.resume and PARTIAL.is_file():
        state = json.loads(PARTIAL.read_text())
    state["peaks"].append(sgemm_peak(workloads.THREADS))
    for name, measure in pending(everything, state["jobs"], options):
        state["jobs"][name] = measure(kept=state["jobs"]) | {"source": fingerprint()}
        keep(state, options)
        print(f"{name}: {cpu_report.in_short(state['jobs'][name])}", flush=True)
    state["peaks"].append(sgemm_peak(workloads.THREADS))
    keep(state, options)
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
    blocks = cpu_report.blocks(state)
    missing = [name for name in everything if name not in state["jobs"]]
    sources = sorted({figures["source"] for figures in state["jobs"].values()})
    if len(sources) > 1:
        print(f"warning: npformer changed during the run, {len(sources)} versions: {sources}")
    if options.quick or (missing and not options.write):
        print("\n\n".join(blocks.values()))
        print(f"\nnot written: {len(missing)} jobs of {len(everything)} are missing")
        return
    if missing:
        blocks["missing"] = f"Not measured yet: {', '.join(missing)}."
    write(
        "cpu",
        state,
        "\n\n".join(blocks.values()),
        blocks={f"cpu {name}": text for name, text in blocks.items()},
        torch=version("torch"),
        threads=workloads.THREADS,
    )
    if not missing:
        PARTIAL.unlink()
