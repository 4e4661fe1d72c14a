"""The tables of `python -m benchmarks cpu`, for each processor."""

import statistics

from benchmarks.results_files import markdown, source_of
from benchmarks.sides import NO_COMPILE
from benchmarks.workloads import DATA_SET

MIXERS = {"attention": "attention", "dense_synthesizer": "synthesizer", "fourier": "Fourier"}

PEERS = {
    "eager": "PyTorch",
    "equal": "PyTorch with equal products",
    "compiled": "torch.compile",
    "JAX": "JAX",
    "passes": "npformer without loops",
}
"""What npformer's time is divided by, and the names in the tables."""

BUSY = 0.05
"""The share of the machine from which on other programs are mentioned."""

SECTIONS = {
    "train": "training step",
    "predict": "prediction of one batch",
    "all": "prediction of many batches",
    "latency": "one sample",
}


def blocks(runs):
    """Return {name: Markdown} of {processor: run}, leaving out what was not measured."""
    made = {"summary": summary(runs)}
    for section, title in SECTIONS.items():
        made[section] = times(runs, section, title)
    made["memory"] = memory(runs)
    made["startup"] = startup(runs)
    made["about"] = about(runs)
    return {name: text for name, text in made.items() if text}


def processor(machine):
    """Return the key of a machine: its processor, and the kernels that OpenBLAS has for it."""
    kernels = "".join(sorted({f", {blas.split()[-1]} kernels" for blas in machine["blas"]}))
    return f"{machine['cpu']}{kernels}"


def of_section(run, section):
    """Return the figures of a section's jobs; those of many batches are inside of others."""
    if section == "all":
        return [f | f["all"] for f in run["jobs"].values() if f["section"] == "predict"]
    return [f for f in run["jobs"].values() if f["section"] == section]


def in_short(figures):
    """Return one line about a job that has just ended."""
    if figures["section"] == "startup":
        return ", ".join(f"{name} {s:.3g} s" for name, s in figures["seconds"].items())
    if figures["section"] == "memory":
        return f"{figures['npformer']['peak_mib']} MiB, torch {figures['torch']['peak_mib']} MiB"
    times = ", ".join(f"{who} {ms['median']} ms" for who, ms in figures["ms"].items())
    said = f"{times} ({figures['variant']}, Adam {figures['adam']}, {figures['rounds']} rounds)"
    if (figures["others_share"] or 0.0) > BUSY:
        said += f"; others took {100 * figures['others_share']:.0f} % of the machine"
    return said


def label(figures, section):
    """Return the name of a case in a table's first column."""
    case = figures["case"]
    words = [case["workload"]["name"], MIXERS[case["mixer"]]]
    if section == "train":
        words.append(f"dropout {case['dropout']:g}")
    if section == "all":
        words[0] += f" {DATA_SET[words[0]]} batches"
    if section == "latency":
        words.append("step" if case["kind"] == "train" else "prediction")
    return " ".join(words)


def by_processor(title, rows_of, runs):
    """Return a table for each processor; ``rows_of(run)`` gives {label: {column: cell}}."""
    made = []
    for name, run in shortened(runs).items():
        rows = rows_of(run)
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        cells = [(each, *(row.get(c, "") for c in columns)) for each, row in rows.items()]
        made += [markdown((f"{title}, {name}", *columns), cells)] if cells else []
    return "\n\n".join(made)


# Summary ------------------------------------------------------------------------------------------


def summary(runs):
    """Return what README says: the ratios to each peer, and in how much npformer is behind."""
    runs = {name: run for name, run in runs.items() if of_section(run, "train")}
    rows = {}
    for name, run in shortened(runs).items():
        for who, peer in PEERS.items():
            values = [ratio for f in of_section(run, "train") if (ratio := ratio_to(f, who))]
            if values:
                middle, ends = statistics.median(values), (min(values), max(values))
                said = f"{middle:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"
                rows.setdefault(f"a training step / {peer}", {})[name] = said
        for section, title in SECTIONS.items():
            rows.setdefault(f"slower than PyTorch: {title}", {})[name] = behind(run, section)
    if not rows:
        return ""
    names = list(shortened(runs))
    cells = [(each, *(row.get(name, "") for name in names)) for each, row in rows.items()]
    rates = "; ".join(
        f"{name} " + ", ".join(f"{who} {rate:.0f}" for who, rate in run["products"].items())
        for name, run in shortened(runs).items()
    )
    lines = [
        markdown(("npformer's time / another's", *names), cells),
        "Below 1, npformer is faster: the median, and the range from small models (S) to long "
        f"sequences (L4096), with the extra `fast`. Products in GFLOP/s: {rates}.",
        *(source_of("cpu", run["machine"]) for run in runs.values()),
    ]
    return "\n\n".join(lines)


def behind(run, section):
    """Return in how many cases PyTorch is faster, and where most."""
    found = of_section(run, section)
    pairs = [(ratio, label(f, section)) for f in found if (ratio := ratio_to(f, "eager"))]
    slower = sum(ratio > 1.0 for ratio, _ in pairs)
    most = f", at most {max(pairs)[0]:.2f} ({max(pairs)[1]})" if slower else ""
    return f"{slower} of {len(pairs)}{most}"


def shortened(runs):
    """Return runs by the processor alone, where that tells them apart."""
    short = [name.split(",")[0].removesuffix(" Processor") for name in runs]
    alone = len(set(short)) == len(short)
    return dict(zip(short if alone else runs, runs.values(), strict=True))


def ratio_to(figures, who):
    """Return npformer's median time divided by a peer's; None if that was not measured."""
    found = figures["ratio"].get(who)
    return None if found is None else found["of_medians"]


# Tables -------------------------------------------------------------------------------------------


def times(runs, section, title):
    """Return npformer's times, and their ratios to those of the others."""

    def rows_of(run):
        rows, peak = {}, run["products"]["NumPy"]
        for figures in of_section(run, section):
            ms = figures["ms"]["npformer"]["median"]
            row = {"ms": number(ms)}
            if section == "train":
                row["of peak"] = f"{100 * figures['matrix_flops'] / (ms / 1e3) / 1e9 / peak:.0f} %"
            for who, name in PEERS.items():
                ratio = ratio_to(figures, who)
                if ratio is not None:
                    row[f"/ {name}"] = f"{ratio:.2f}"
            rows[label(figures, section)] = row
        return rows

    return by_processor(title, rows_of, runs)


def memory(runs):
    """Return peaks of resident memory."""

    def rows_of(run):
        return {
            label(figures, "memory"): {
                "npformer": figures["npformer"]["peak_mib"],
                "PyTorch": figures["torch"]["peak_mib"],
            }
            for figures in of_section(run, "memory")
        }

    return by_processor("peak memory, MiB", rows_of, runs)


def startup(runs):
    """Return seconds, each a median."""

    def rows_of(run):
        found = of_section(run, "startup")
        seconds = found[0]["seconds"] if found else {}
        return {name: {"seconds": f"{each:.2f}"} for name, each in seconds.items()}

    return by_processor("start-up, each in a fresh process", rows_of, runs)


def about(runs):
    """Return what the tables measure, and where."""
    everything = [f for run in runs.values() for f in run["jobs"].values()]
    lines = [
        "A training step is forward, loss, backward and Adam; a prediction is ids to labels. "
        "Medians, in turn; gelu, post-norm, 4 heads, float32. The peak is that of NumPy's float32 "
        "products of size 2048, one thread on each core; a step's share counts its products only. "
        f"{sizes([f for f in everything if 'case' in f])}",
        "Equal products: PyTorch multiplies by MKL, which takes kernels for AVX2 on an AMD that "
        "has AVX-512. There it takes those for Intel's processors.",
        "Peak memory is that of a process that takes 3 training steps with dropout 0.1 (L8192: 1). "
        "A first step is import, building S with attention, and one training step; with "
        "torch.compile, nothing was compiled before.",
    ]
    reasons = {f["not_compiled"] for f in everything if f.get("not_compiled")} - {NO_COMPILE}
    lines += [f"torch.compile: {reason}." for reason in sorted(reasons)]
    for name, run in runs.items():
        timed = [f for f in run["jobs"].values() if "ms" in f]
        said = winners(timed), disturbances(timed), source_of("cpu", run["machine"])
        lines.append(f"{name}: {''.join(said)}")
    return "\n\n".join(lines)


def sizes(found):
    """Return what the names of the workloads mean."""
    said = {}
    for figures in found:
        w = figures["case"]["workload"]
        said.setdefault(
            w["name"],
            f"{w['name']}: batch {w['batch']}, length {w['length']}, d_model {w['d_model']}, "
            f"d_ff {w['d_ff']}, {w['layers']} layer{'s' if w['layers'] > 1 else ''}",
        )
    return "; ".join(said.values()) + "."


def winners(found):
    """Return how often each of PyTorch's variants was the fastest and was compared."""
    counts = {}
    for figures in found:
        key = MIXERS[figures["case"]["mixer"]], figures["variant"]
        counts[key] = counts.get(key, 0) + 1
    text = "; ".join(f"{mixer}: {variant} ({n})" for (mixer, variant), n in counts.items())
    return f"PyTorch's fastest variants, and in how many cases: {text}. "


def disturbances(found):
    """Return a sentence about cases that other programs may have disturbed."""
    doubtful = [f for f in found if (f["others_share"] or 0.0) > BUSY]
    if not doubtful:
        return ""
    worst = max(f["others_share"] for f in doubtful)
    return (
        f"In {len(doubtful)} of {len(found)} cases other programs took more than "
        f"{100 * BUSY:.0f} % of the machine (at most {100 * worst:.0f} %). "
    )


def number(ms):
    """Return milliseconds with about three digits."""
    if ms >= 100:
        return f"{ms:.0f}"
    if ms >= 10:
        return f"{ms:.1f}"
    return f"{ms:.2f}"
