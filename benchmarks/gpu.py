"""npformer on CuPy and PyTorch on the same GPU: training steps, memory, and the `ffn` question.

Each side is a separate process; they take turns. All weights, batches and results are on the GPU,
and a turn starts and ends when the GPU has nothing left to do. `--dry-run` runs everything on the
CPU with tiny sizes, to see that it works.
"""

import argparse
import copy
import itertools
import json
import re
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import numpy as np

from benchmarks import workloads
from benchmarks.jobs import add_options, in_one_line, pending, wanted
from benchmarks.remote import Remote
from benchmarks.results_files import RESULTS, machine, show
from benchmarks.timing import interleave, ratio, significant, summary
from benchmarks.workloads import MIXERS, Case, M, S, Workload, X

BERT = Workload("BERT", 64, 512, 768, 3072, 12)  # the sizes of BERT base, with our 1000 tokens
HEADS = {"BERT": 12}
FFN = (512, 32, 512)  # batch, positions, features: those of the published benchmark
TINY = {"batch": 4, "length": 8, "d_model": 24, "d_ff": 32, "layers": 1}
PRECISIONS = ("float32", "tf32")
LOGITS_AGREE = {"float32": 1e-3, "tf32": 5e-2}
LOSSES_AGREE = {"float32": 1e-3, "tf32": 2e-2}
ROUNDS = {"seconds": 10.0}
QUICK = {"seconds": 0.5, "least": 2}
PARTIAL = RESULTS / "gpu.partial.json"


def cases():
    """Yield what is trained: small models without dropout, the large one as usual."""
    for workload in (S, M, X):
        for mixer in MIXERS:
            yield Case("train", workload, mixer)
    for mixer in ("attention", "fourier"):
        yield Case("train", BERT, mixer, dropout=0.1)


def timed(step, wait, n):
    """Run a step n times, after an untimed one; return the seconds per step."""
    step()
    wait()
    began = time.perf_counter()
    for _ in range(n):
        step()
    wait()
    return (time.perf_counter() - began) / n


def best(step, wait):
    """Return the best of a few turns, enough to choose between variants."""
    return min(timed(step, wait, 3) for _ in range(3))


# npformer's side ----------------------------------------------------------------------------------


class Ours:
    """npformer's model of a case on a backend, and its steps: with kernels and without."""

    def __init__(self, case, backend, precision):
        import npformer as nf
        from benchmarks.ours import Ours as OnTheHost

        workloads.HEADS = HEADS.get(case.workload.name, workloads.HEADS)
        ours = OnTheHost(case)
        self.nf, self.backend, self.model = nf, backend, ours.model
        self.start = ours.weights()
        self.model.to(backend)
        self.ours = ours
        nf.use_precision(precision, backend)
        ours.batches = [tuple(nf.asarray(part, backend) for part in b) for b in ours.batches]
        ours.in_turn = itertools.cycle(ours.batches)
        if backend == "cupy":
            from npformer.engine.gpu import DeviceGenerator  # masks are drawn where they are used

            ours.generator = DeviceGenerator(0)

    def weights(self):
        """Return all initial weights, under npformer's names."""
        return self.start

    def logits(self):
        """Return the logits of the first batch, without dropout."""
        return self.nf.to_numpy(self.model(self.ours.batches[0][0]))

    def losses(self, n):
        """Run n training steps and return their losses."""
        return [float(self.ours.train()) for _ in range(n)]

    def wait(self):
        """Return when everything that was launched has been done."""
        self.nf.to_numpy(self.model.parameters().flat[:1])

    def turn(self, kernels, n):
        """Return the seconds per step, over n steps."""
        with self.nf.use_kernels(kernels):
            return timed(self.ours.train, self.wait, n)

    def held_mib(self):
        """Empty the pool, run three steps with kernels, and return the memory it then holds."""
        if self.backend != "cupy":
            return 0
        import cupy

        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        self.turn(True, 3)
        return round(pool.total_bytes() / 2**20)


class OursFFN:
    """npformer's side of `ffn` on a backend."""

    def __init__(self, sizes, backend, precision):
        import npformer as nf
        from benchmarks.ffn_ours import Ours as OnTheHost

        ours = OnTheHost(*sizes)
        self.nf, self.ours = nf, ours
        self.start = ours.weights()
        for model in ours.models.values():
            model.to(backend)
        nf.use_precision(precision, backend)
        ours.x, ours.y = (nf.asarray(part, backend) for part in (ours.x, ours.y))

    def weights(self):
        """Return the weights of the linear maps, under npformer's names."""
        return self.start

    def logits(self):
        """Return both models' logits."""
        models = self.ours.models.items()
        return {ffn: self.nf.to_numpy(self.nf.fast(model)(self.ours.x)) for ffn, model in models}

    def turn(self, ffn, n):
        """Return the seconds per step, over n steps."""
        flat = self.ours.models[ffn].parameters().flat
        return timed(lambda: self.ours.train(ffn), lambda: self.nf.to_numpy(flat[:1]), n)


# PyTorch's side -----------------------------------------------------------------------------------


def torch_at(precision):
    """Return PyTorch, set to a precision of matrix products."""
    import torch

    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"  # for convolutions
    return torch


class Peer:
    """PyTorch's models of a case with given weights: the fastest way to write it, and compiled."""

    def __init__(self, case, device, precision):
        workloads.HEADS = HEADS.get(case.workload.name, workloads.HEADS)
        self.torch = torch_at(precision)
        from benchmarks import peers

        there = [tuple(t.to(device) for t in pair) for pair in peers.tensors(case.workload)]
        peers.tensors = lambda workload: there  # where its steps take their batches from
        self.case, self.device, self.peers, self.batches = case, device, peers, there
        variants = peers.VARIANTS[case.mixer]
        self.models = {name: peers.Classifier(case, name).to(device) for name in variants}
        self.steps = {}

    def load(self, weights):
        """Copy npformer's weights into every variant."""
        for model in self.models.values():
            model.load(weights)

    def logits(self):
        """Return each variant's logits of the first batch, without dropout."""
        ids, _ = self.batches[0]
        with self.torch.inference_mode():
            return {name: m.eval()(ids).cpu().numpy() for name, m in self.models.items()}

    def wait(self):
        """Return when everything that was launched has been done."""
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def choose(self):
        """Find the fastest variant and the fastest Adam; "eager" is then ready for its turns."""
        tried = {}
        for name, model in self.models.items():
            tried[name] = best(self.step(copy.deepcopy(model), "fused"), self.wait)
        variant, adam = min(tried, key=tried.get), "fused"
        tried["foreach"] = best(
            self.step(copy.deepcopy(self.models[variant]), "foreach"), self.wait
        )
        if tried["foreach"] < tried[variant]:
            adam = "foreach"
        chosen, self.adam, self.models = self.models[variant], adam, {}
        self.steps["eager"] = self.step(copy.deepcopy(chosen), adam)
        self.chosen = chosen.cpu()  # for `compile`; the GPU is to hold the eager step only
        if self.device != "cpu":
            self.torch.cuda.empty_cache()
        return {
            "variant": variant,
            "adam": adam,
            "tried_ms": {name: significant(1e3 * s) for name, s in tried.items()},
        }

    def step(self, model, adam, compiled=False):
        """Return a function that trains on the next batch."""
        return self.peers.training_step(self.case, model, adam, compiled)

    def compile(self):
        """Compile the fastest variant; return the reason if that fails, else None."""
        twin = copy.deepcopy(self.chosen).to(self.device)
        step = self.step(twin, self.adam, compiled=True)
        try:
            self.first = step()
            self.wait()
        except Exception as problem:  # whatever it is, it is part of the answer
            return in_one_line(problem)
        self.steps["compiled"] = step
        return None

    def losses(self, who, n):
        """Run the first n training steps and return their losses; compiling was one of them."""
        done = [self.first.item()] if who == "compiled" else []
        return done + [self.steps[who]().item() for _ in range(n - len(done))]

    def turn(self, who, n):
        """Return the seconds per step, over n steps."""
        return timed(self.steps[who], self.wait, n)

    def held_mib(self):
        """Empty the pool, run three eager steps, and return the most memory that it held."""
        if self.device == "cpu":
            return 0
        self.torch.cuda.empty_cache()
        self.torch.cuda.reset_peak_memory_stats()
        self.turn("eager", 3)
        return round(self.torch.cuda.max_memory_reserved() / 2**20)


class PeerFFN:
    """PyTorch's side of `ffn` on a device, with a compiled version of the linear maps."""

    def __init__(self, sizes, device, precision):
        self.torch = torch_at(precision)
        from benchmarks.ffn_peers import Peer as OnTheHost

        self.device, self.peer = device, OnTheHost(*sizes)
        self.peer.x, self.peer.y = self.peer.x.to(device), self.peer.y.to(device)
        for model in self.peer.models.values():
            model.to(device)

    def load(self, weights):
        """Copy npformer's weights into both models."""
        self.peer.load(weights)

    def logits(self):
        """Return both models' logits."""
        with self.torch.inference_mode():
            models = self.peer.models.items()
            return {kind: model(self.peer.x).cpu().numpy() for kind, model in models}

    def compile(self):
        """Add the compiled linear maps; return the reason if that fails, else None."""
        twin = copy.deepcopy(self.peer.models["linear"])
        adam = self.torch.optim.Adam(twin.parameters(), eps=workloads.KERAS_EPSILON, fused=True)
        self.peer.models["linear, compiled"] = self.torch.compile(twin)
        self.peer.optimizers["linear, compiled"] = adam
        try:
            self.turn("linear, compiled", 1)
        except Exception as problem:
            return in_one_line(problem)
        return None

    def turn(self, kind, n):
        """Return the seconds per step, over n steps."""
        wait = (lambda: None) if self.device == "cpu" else self.torch.cuda.synchronize
        return timed(lambda: self.peer.train(kind), wait, n)


# The run ------------------------------------------------------------------------------------------


def compare(case, precision, options):
    """Time both sides on one case, in turn; return the figures."""
    with ExitStack() as both:
        ours = both.enter_context(
            Remote("benchmarks.gpu", "Ours", case, options.backend, precision)
        )
        theirs = both.enter_context(
            Remote("benchmarks.gpu", "Peer", case, options.device, precision)
        )
        theirs.call("load", ours.call("weights"))
        apart = agreement(ours.call("logits"), theirs.call("logits"), LOGITS_AGREE[precision])
        figures = {"case": case.described(), "precision": precision, "logits_apart": apart}
        figures |= theirs.call("choose")
        expected = np.array(ours.call("losses", 3)) if case.dropout == 0.0 else None

        def check_losses(who):
            if expected is not None:
                apart = np.abs(np.array(theirs.call("losses", who, 3)) / expected - 1.0).max()
                if not apart <= LOSSES_AGREE[precision]:
                    raise ValueError(
                        f"losses of {who} are {apart:.1e} apart; is it another function?"
                    )

        check_losses("eager")
        # Measured before steps without kernels and before a compiled model: a pool keeps what
        # they need.
        figures["held_mib"] = {
            "npformer": ours.call("held_mib"),
            "PyTorch": theirs.call("held_mib"),
        }
        figures["not_compiled"] = theirs.call("compile") if options.compile else "--no-compile"
        peers = ["eager"] if figures["not_compiled"] else ["eager", "compiled"]
        if "compiled" in peers:
            check_losses("compiled")
        turns = {"npformer": partial(ours.call, "turn", True)}
        turns["npformer, without kernels"] = partial(ours.call, "turn", False)
        turns |= {who: partial(theirs.call, "turn", who) for who in peers}
        taken = interleave(turns, **(QUICK if options.quick else ROUNDS))
    figures["rounds"] = len(taken["npformer"])
    figures["ms"] = {who: summary(seconds) for who, seconds in taken.items()}
    figures["ratio"] = {who: ratio(taken["npformer"], taken[who]) for who in taken}
    return figures


def compare_ffn(sizes, precision, options):
    """Time the published benchmark's feed-forward network, in turn; return the figures."""
    with ExitStack() as both:
        ours = both.enter_context(
            Remote("benchmarks.gpu", "OursFFN", sizes, options.backend, precision)
        )
        theirs = both.enter_context(
            Remote("benchmarks.gpu", "PeerFFN", sizes, options.device, precision)
        )
        theirs.call("load", ours.call("weights"))
        logits = ours.call("logits")
        for found in (logits, theirs.call("logits")):
            agreement(logits["linear"], found, LOGITS_AGREE[precision])
        turns = {f"npformer, {kind}": partial(ours.call, "turn", kind) for kind in logits}
        problem = theirs.call("compile") if options.compile else "--no-compile"
        kinds = ["linear", "conv1d", *(["linear, compiled"] if problem is None else [])]
        turns |= {f"PyTorch, {kind}": partial(theirs.call, "turn", kind) for kind in kinds}
        taken = interleave(turns, **(QUICK if options.quick else ROUNDS))
    return {
        "sizes": dict(zip(("batch", "length", "width"), sizes, strict=True)),
        "precision": precision,
        "not_compiled": problem,
        "ms": {who: summary(seconds) for who, seconds in taken.items()},
    }


def agreement(ours, theirs, tolerance):
    """Return the largest difference of logits; raise if it is too large for the same function."""
    apart = {name: float(np.abs(ours - logits).max()) for name, logits in theirs.items()}
    allowed = tolerance * max(1.0, float(np.abs(ours).max()))
    for name, distance in apart.items():
        if not distance <= allowed:
            raise ValueError(f"logits of {name!r} are {distance:.1e} apart; allowed {allowed:.1e}")
    return significant(max(apart.values()))


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
    precisions = PRECISIONS[:1] if options.dry_run else PRECISIONS
    found = {}
    for case, precision in itertools.product(cases(), precisions):
        name = f"{case.workload.name} {case.mixer} {precision}"
        if options.dry_run:
            case = replace(case, workload=replace(case.workload, **TINY))
        found[name] = partial(compare, case, precision, options)
    for precision in precisions:
        sizes = (4, 3, 8) if options.dry_run else FFN
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
    return "\n\n".join(
        made
        for made in (
            case_table(figures["cases"]) if figures["cases"] else "",
            ffn_table(figures["ffn"]) if figures["ffn"] else "",
            "\n".join(f"Not measured: {n}: {why}." for n, why in figures["failed"].items()),
        )
        if made
    )


def case_table(found):
    """Return times, ratios and memory: one row per model and precision."""
    lines = [
        "| training step | precision | npformer, ms | quartiles | without kernels, ms | / eager "
        "| / compiled | memory, MiB | PyTorch's |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for f in found:
        case, ms = f["case"], f["ms"]
        ratios = [
            f"{f['ratio'][who]['of_medians']:.2f}" if who in f["ratio"] else "not compiled"
            for who in ("eager", "compiled")
        ]
        ours = ms["npformer"]
        cells = [
            f"{case['workload']['name']}, {case['mixer']}, dropout {case['dropout']:g}",
            f["precision"],
            f"{ours['median']:.4g}",
            f"{ours['q1']:.4g} to {ours['q3']:.4g}",
            f"{ms['npformer, without kernels']['median']:.4g}",
            *ratios,
            *(str(f["held_mib"][side]) for side in ("npformer", "PyTorch")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    sizes = {
        w["name"]: f"{w['name']} is batch {w['batch']}, length {w['length']}, d_model "
        f"{w['d_model']}, d_ff {w['d_ff']}, {HEADS.get(w['name'], workloads.HEADS)} heads, "
        f"{w['layers']} layers"
        for w in (f["case"]["workload"] for f in found)
    }
    reasons = sorted({f["not_compiled"] for f in found if f["not_compiled"]})
    return "\n".join(
        [
            *lines,
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
    sizes = found[0]["sizes"]
    lines = [
        f"| batch {sizes['batch']}, {sizes['length']} positions, {sizes['width']} -> "
        f"{4 * sizes['width']} -> {sizes['width']} | precision | step, ms | quartiles |",
        "|---|---|---:|---:|",
    ]
    for f in found:
        for who, ms in f["ms"].items():
            lines.append(
                f"| {who} | {f['precision']} | {ms['median']:.4g} | {ms['q1']:.4g} to "
                f"{ms['q3']:.4g} |"
            )
    return "\n".join(lines)
