"""The tables and the plot of `python -m benchmarks ranks-model`."""

from benchmarks.network import formulas
from benchmarks.network.networks import NETWORKS, Cluster
from benchmarks.network.predictions import CORES, ENOUGH, GLOBAL_BATCH, MACHINE, RANKS, Predictions
from benchmarks.network.simulator import USUAL

SPEED = {link.name: link.name.split()[0] for link in NETWORKS}
SHORT = {name: f"{speed} Gbit/s" for name, speed in SPEED.items()}
NAMES = {"S": "S", "M": "M", "X": "X", "BERT": "BERT"}
COSTS = ("slow ranks", "meetings", "latency", "bandwidth", "sums", "update", "small batch")
REMEDIES = ("halving", "overlap", "sharded", "all")
SIMULATED = "**Simulated, not measured.**"


def row(*cells):
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def rule(text, numbers):
    """Return the line below the header of a table."""
    return f"|{'---|' * text}{'---:|' * numbers}"


def inputs(measured):
    """Return the inputs: measured here, and published."""
    lines = [
        row(
            "model",
            "parameters",
            "tokens",
            "samples of a rank",
            "forward and backward, ms",
            "Adam, ms",
        ),
        rule(1, 5),
    ]
    for name, model in measured["models"].items():
        w = model["workload"]
        lines.append(
            row(
                f"{name.replace('BERT', 'BERT-base-like')}: d_model {w['d_model']}, "
                f"{w['layers']} layers",
                f"{model['parameters']:,}",
                w["length"],
                w["batch"],
                f"{1e3 * model['compute'][str(w['batch'])]:.0f}",
                f"{1e3 * model['update']:.1f}",
            )
        )
    memory, on = measured["memory"], measured["machine"]
    ratios = [taken / formula for taken, formula in compared(measured)[1:]]
    lines += [
        "",
        f"Measured on one core of {on['cpu']}, {on['date']}: attention, float32, seconds of the "
        "processor, the fastest step. Two ranks of this machine: an empty message takes "
        f"{1e6 * memory['latency']:.1f} us through shared memory, a byte "
        f"{1e9 / memory['bandwidth']:.2f} ns, adding it {1e9 * memory['add']:.2f} ns, and the "
        f"Python of a meeting {1e6 * memory['call']:.1f} us. Adding includes what MPI copies "
        f"for it; the sum alone takes {1e9 * memory['add_alone']:.2f} ns. Their "
        f"real all-reduce of 64 KB to 64 MB takes {min(ratios):.1f} to {max(ratios):.1f} times "
        "what the formula says.",
        "",
        row("network", "latency, us", "GB/s", "source"),
        "|---|---:|---:|---|",
        *(
            row(link.name, f"{1e6 * link.latency:.1f}", f"{link.bandwidth / 1e9:.2f}", link.source)
            for link in NETWORKS
        ),
    ]
    return "\n".join(lines)


def compared(measured):
    """Return the all-reduces of two ranks of this machine: as measured, and by the formula."""
    it = Predictions(measured)
    cluster = Cluster(2, it.memory, **it.costs)
    meeting = cluster.call + it.memory.latency
    return [
        (taken, meeting + formulas.mpich(cluster, int(size)))
        for size, taken in measured["memory"]["all_reduce"].items()
    ]


def efficiency(efficiencies, scaling):
    """Return the efficiencies of one kind of scaling, with 1 core and with 16, in per cent."""
    lines = [row("model, Gbit/s", *(f"{n:,}" for n in RANKS[1:]), "quiet")]
    lines.append(rule(1, len(RANKS)))
    for size, by_cores in efficiencies[scaling].items():
        for link in NETWORKS:
            pairs = zip(*(by_cores[cores][link.name][1:] for cores in CORES), strict=True)
            cells = ["/".join(f"{100 * e:.0f}" for e in pair) for pair in pairs]
            lines.append(row(f"{NAMES[size]}, {SPEED[link.name]}", *cells))
    return "\n".join(lines)


def scaling(measured, efficiencies):
    """Return both tables of efficiencies."""
    batches = {name: model["workload"]["batch"] for name, model in measured["models"].items()}
    largest = ", ".join(f"{NAMES[name]} {RANKS[-1] * b:,}" for name, b in batches.items())
    return "\n".join(
        [
            f"{SIMULATED} Efficiency in per cent, by the number of ranks: with one core for each "
            f"rank, as measured, / with {CORES[1]} cores that share its work without a loss.",
            "",
            "Weak scaling: each rank keeps its batch, and the batch of all grows with them. With "
            f"{RANKS[-1]:,} ranks a step has so many samples: {largest}.",
            "",
            efficiency(efficiencies, "weak"),
            "",
            f"Strong scaling: all ranks together keep a batch of {GLOBAL_BATCH:,}.",
            "",
            efficiency(efficiencies, "strong"),
            "",
            f"One rank on each machine; steps of ranks vary by {100 * USUAL.sigma:.0f} % "
            f"(log-normal), and 1 in {1 / USUAL.slow:,.0f} takes {USUAL.factor} times as long. "
            f"These two are assumptions; the last column, quiet, has {RANKS[-1]:,} ranks without "
            "them, by the formula.",
        ]
    )


def breaks(found, losses):
    """Return the tables of what breaks first, and of what a step loses."""
    heads = [SHORT[link.name] for link in NETWORKS]
    lines = [
        f"{SIMULATED} The number of ranks at which the efficiency falls below "
        f"{100 * ENOUGH:.0f} %, and what costs most there:",
        "",
        row("scaling", "model", "cores of a rank", *heads),
        rule(2, 1) + "---|" * len(heads),
    ]
    for scaling in ("weak", "strong"):
        for size, name in NAMES.items():
            for cores in CORES:
                each = [found[f"{scaling}, {size}, {cores}, {link.name}"] for link in NETWORKS]
                where = [f"{e['ranks']:,}" if e["ranks"] else f"> {RANKS[-1]:,}" for e in each]
                cells = [f"{n}: {e['most']}" for n, e in zip(where, each, strict=True)]
                lines.append(row(scaling, name, cores, *cells))
    lines += [
        "",
        f"What a step would save, in per cent, if one thing cost nothing ({CORES[1]} cores a rank, "
        f"{NETWORKS[1].name}):",
        "",
        row("scaling", "model", "ranks", *COSTS),
        rule(2, 1 + len(COSTS)),
    ]
    for each in losses:
        cells = [f"{100 * each['losses'][c]:.0f}" if c in each["losses"] else "" for c in COSTS]
        lines.append(row(each["scaling"], NAMES[each["size"]], f"{each['ranks']:,}", *cells))
    return "\n".join(lines)


def remedies(found, n_ranks):
    """Return the gain of each remedy."""
    lines = [
        f"{SIMULATED} Time of a step with a remedy, divided by its time without: weak scaling, "
        f"{CORES[1]} cores a rank.",
        "",
        row(
            "model",
            "Gbit/s",
            *(f"{n:,} ranks: {each}" for n in n_ranks for each in REMEDIES),
        ),
        rule(2, len(n_ranks) * len(REMEDIES)),
    ]
    for size, name in NAMES.items():
        for link in NETWORKS:
            cells = [
                f"{found[f'{size}, {link.name}, {n}'][each]:.2f}"
                for n in n_ranks
                for each in REMEDIES
            ]
            lines.append(row(name, SPEED[link.name], *cells))
    lines += [
        "",
        "`halving`: recursive halving and doubling instead of n - 1 rounds. `overlap`: the "
        "gradients of each block are summed while the next block computes, and the network needs "
        "no core for that. `sharded`: each rank updates its shard of the parameters.",
    ]
    return "\n".join(lines)


def layouts(found):
    """Return how long exchanges take if ranks share machines."""
    schedules = list(next(iter(found.values())))
    lines = [
        f"{SIMULATED} An all-reduce in ms, {MACHINE} ranks on each machine:",
        "",
        row("model", "Gbit/s", "ranks", *schedules),
        rule(2, 1 + len(schedules)),
    ]
    for key, by_schedule in found.items():
        size, name, n = key.split("; ")
        cells = [f"{1e3 * by_schedule[each]:.0f}" for each in schedules]
        lines.append(row(NAMES[size], SPEED[name], f"{int(n):,}", *cells))
    return "\n".join(lines)


def plot(efficiencies, path):
    """Plot efficiencies against the number of ranks."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, all_axes = plt.subplots(
        2, 2, figsize=(9, 6.4), sharex=True, sharey=True, layout="constrained"
    )
    colours = ("#d55e00", "#0072b2", "#009e73")
    for axes, scaling in zip(all_axes, ("weak", "strong"), strict=True):
        for ax, size in zip(axes, ("M", "BERT"), strict=True):
            for link, colour in zip(NETWORKS, colours, strict=True):
                for cores, style in zip(CORES, (":", "-"), strict=True):
                    values = efficiencies[scaling][size][cores][link.name][: len(RANKS)]
                    values = [100 * e for e in values]
                    ax.plot(RANKS, values, style, color=colour, marker="o", markersize=3)
            ax.set_title(f"{NAMES[size]}, {scaling} scaling", loc="left", fontsize=10.5)
            ax.grid(axis="y", color="0.92")
            ax.set_xscale("log", base=2)
            ax.set_xticks(RANKS[::2], [f"{n:,}" for n in RANKS[::2]])
            ax.xaxis.set_minor_locator(mpl.ticker.NullLocator())
            ax.set_ylim(0, 104)
    for ax in all_axes[1]:
        ax.set_xlabel("ranks")
    for axes in all_axes:
        axes[0].set_ylabel("efficiency, per cent")
    lines = [
        mpl.lines.Line2D([], [], color=c, label=SHORT[x.name])
        for x, c in zip(NETWORKS, colours, strict=True)
    ]
    lines += [
        mpl.lines.Line2D([], [], color="0.35", ls=s, label=f"{c} core{'s' * (c > 1)} a rank")
        for c, s in zip(CORES, (":", "-"), strict=True)
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)
