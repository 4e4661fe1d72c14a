"""The tables of `python -m benchmarks cpu`."""

import statistics

from benchmarks.results_files import markdown
from benchmarks.workloads import DATA_SET, MIXERS

HEADINGS = {"attention": "attention", "dense_synthesizer": "synthesizer", "fourier": "Fourier"}

BUSY = 0.05
"""The share of the machine from which on other programs are mentioned."""


def blocks(state):
    """Return {name: Markdown}, leaving out what was not measured."""
    peak = max(state["peaks"])
    of = {}
    for figures in state["jobs"].values():
        of.setdefault(figures["section"], []).append(figures)
    made = {}
    if "train" in of:
        made["summary"] = ratios_in_words(of["train"])
        made["train"] = training_table(of["train"], peak, state["peaks"])
    if "predict" in of:
        whole = [f | f["all"] for f in of["predict"]]
        made["predict"] = prediction_table(whole, "prediction of many batches", batches_label)
        made["batch"] = prediction_table(of["predict"], "prediction of one batch", label)
    if "latency" in of:
        made["latency"] = prediction_table(of["latency"], "one or two samples", latency_label)
    if "memory" in of:
        made["memory"] = memory_table(of["memory"])
    if "startup" in of:
        made["startup"] = startup_table(of["startup"][0])
    return made


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


# Training -----------------------------------------------------------------------------------------


def by_mixer(found, title, columns, label, cells):
    """Return a table: one row per label of a case, some columns per mixer."""
    mixers = [m for m in MIXERS if any(f["case"]["mixer"] == m for f in found)]
    first, *others = columns
    heads = [head for m in mixers for head in (f"{HEADINGS[m]}, {first}", *others)]
    rows = {}
    for figures in found:
        rows.setdefault(label(figures["case"]), {})[figures["case"]["mixer"]] = figures
    nothing = [""] * len(columns)
    return markdown(
        (title, *heads),
        [
            (name, *(cell for m in mixers for cell in (cells(row[m]) if m in row else nothing)))
            for name, row in rows.items()
        ],
    )


def training_table(found, peak, peaks):
    """Return times, ratios and shares of the peak: one row per model, four columns per mixer."""

    def cells(figures):
        ms = figures["ms"]["npformer"]["median"]
        rate = figures["matrix_flops"] / (ms / 1e3) / 1e9
        return number(ms), *ratios(figures), f"{100 * rate / peak:.0f} %"

    columns = "ms", "/ eager", "/ compiled", "of peak"
    readings = ", ".join(f"{p:.0f}" for p in peaks)
    return "\n".join(
        [
            by_mixer(found, "training step", columns, training_label, cells),
            "",
            "Medians of npformer's step (forward, loss, backward, Adam), divided by PyTorch's: "
            "below 1 npformer is faster. The peak is that of float32 matrix products of size 2048, "
            f"one BLAS thread on each core: {peak:.0f} GFLOP/s (read: {readings}); a step's share "
            "counts its matrix products only.",
            "",
            sizes(found),
            "",
            winners(found),
            *reasons(found),
            *disturbances(found),
        ]
    )


def training_label(case):
    return f"{case['workload']['name']}, {case['activation']}, dropout {case['dropout']:g}"


def ratios(figures):
    """Return the cells of both ratios."""
    both = (figures["ratio"].get(who) for who in ("eager", "compiled"))
    return ["" if r is None else f"{r['of_medians']:.2f}" for r in both]


def ratios_in_words(found):
    """Return what the ratios are and, in a line for each peer, their median, worst and best."""
    lines = [
        "The time of a training step, npformer's divided by PyTorch's, from small models (S) to "
        "long sequences (L4096); below 1, npformer is faster:",
        "",
    ]
    for who, name in (("eager", "PyTorch eager"), ("compiled", "torch.compile")):
        pairs = [
            (f["ratio"][who]["of_medians"], f"{training_label(f['case'])}, {f['case']['mixer']}")
            for f in found
            if who in f["ratio"]
        ]
        if not pairs:
            continue
        values = [value for value, _ in pairs]
        faster = sum(value < 1.0 for value in values)
        worst, where = max(pairs)
        best, there = min(pairs)
        lines.append(
            f"- beside {name}, {len(pairs)} settings: median {statistics.median(values):.2f}, "
            f"worst {worst:.2f} ({where}), best {best:.2f} ({there}); npformer is faster in "
            f"{faster} of {len(pairs)}."
        )
    return "\n".join(lines)


def sizes(found):
    """Return what the names of the workloads mean."""
    said = {}
    for figures in found:
        w = figures["case"]["workload"]
        said[w["name"]] = (
            f"{w['name']}: batch {w['batch']}, length {w['length']}, d_model {w['d_model']}, "
            f"d_ff {w['d_ff']}, {w['layers']} layer{'s' if w['layers'] > 1 else ''}"
        )
    return "; ".join(said.values()) + ". 4 heads, float32, post-norm."


def winners(found):
    """Return how often each of PyTorch's variants was the fastest and was compared."""
    counts = {}
    for figures in found:
        key = HEADINGS[figures["case"]["mixer"]], figures["variant"]
        counts[key] = counts.get(key, 0) + 1
    text = "; ".join(f"{mixer}: {variant} ({n})" for (mixer, variant), n in counts.items())
    return f"PyTorch's fastest variants, and in how many cases: {text}."


def reasons(found):
    """Return a line for each reason why something was not compiled."""
    texts = sorted({f["not_compiled"] for f in found if f["not_compiled"]})
    return [line for text in texts for line in ("", f"torch.compile: {text}.")]


def disturbances(found):
    """Return a line about cases that other programs may have disturbed."""
    doubtful = [f for f in found if (f["others_share"] or 0.0) > BUSY]
    if not doubtful:
        return []
    worst = max(f["others_share"] for f in doubtful)
    return [
        "",
        f"In {len(doubtful)} of {len(found)} cases other programs took more than "
        f"{100 * BUSY:.0f} % of the machine (at most {100 * worst:.0f} %).",
    ]


# Prediction, latency ------------------------------------------------------------------------------


def prediction_table(found, title, label):
    """Return times and ratios: one row per workload, three columns per mixer."""

    def cells(figures):
        return number(figures["ms"]["npformer"]["median"]), *ratios(figures)

    return "\n".join(
        [
            by_mixer(found, title, ("ms", "/ eager", "/ compiled"), label, cells),
            "",
            "Prediction is ids to labels; PyTorch in evaluation and inference mode. "
            "gelu, dropout 0.",
            *reasons(found),
            *disturbances(found),
        ]
    )


def label(case):
    return case["workload"]["name"]


def batches_label(case):
    name = case["workload"]["name"]
    return f"{name}, {DATA_SET[name]} batches"


def latency_label(case):
    kind = {"train": "training step", "predict": "prediction"}[case["kind"]]
    return f"{case['workload']['name']}, batch {case['workload']['batch']}, {kind}"


# Memory, start-up ---------------------------------------------------------------------------------


def memory_table(found):
    """Return peaks of resident memory: one row per workload, two columns per mixer."""
    sides = "npformer", "torch"

    def cells(figures):
        return [figures[side]["peak_mib"] for side in sides]

    imported = [statistics.median(f[side]["import_mib"] for f in found) for side in sides]
    w, last = found[-1]["case"]["workload"], ""
    if found[-1]["steps"] == 1:
        last = (
            f"; {w['name']} is batch {w['batch']}, length {w['length']}, {w['layers']} layer, and "
            "1 step"
        )
    return (
        f"{by_mixer(found, 'peak memory, MiB', ('npformer', 'PyTorch'), label, cells)}\n\n"
        "Peak of resident memory of a process that takes 3 training steps with gelu and dropout "
        f"0.1{last}. Of that, after the imports alone: npformer {imported[0]:.0f} MiB, "
        f"PyTorch {imported[1]:.0f} MiB."
    )


def startup_table(figures):
    """Return seconds, each a median."""
    seconds = [(name, f"{each:.2f}") for name, each in figures["seconds"].items()]
    compiled = figures["runs"].get("first step, torch.compile")
    last = f", of {compiled} with torch.compile, which found nothing compiled" if compiled else ""
    return (
        f"{markdown(('start-up, each in a fresh process', 'seconds'), seconds)}\n\n"
        "A first step is import, building S with attention, and one training step. Medians of "
        f"{figures['runs']['import numpy']} runs{last}."
    )


def number(ms):
    """Return milliseconds with about three digits."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"
