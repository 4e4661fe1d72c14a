"""At which length does the FFT become faster than attention? One layer, and its mixer alone."""

import math
import tracemalloc

import numpy as np

import npformer as nf
from benchmarks.results_files import RESULTS, markdown, write
from benchmarks.timing import Others, interleave, significant, summary, timed
from benchmarks.workloads import HEADS, MIXERS, THREADS
from npformer.core.inputs import Sequences
from npformer.engine.team import Team
from npformer.mixers import MIXERS as MIXER_TYPES
from npformer.models.batch import Batch
from npformer.models.losses import Loss

TOKENS, D_MODEL, D_FF = 8192, 256, 1024
LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
FITTED = 2048
"""Growth is fitted from this length on; below it, costs independent of length dominate."""
WHAT = {"layer": "one encoder layer", "mixer": "the mixer alone"}
NAMES = {"attention": "attention", "dense_synthesizer": "synthesizer", "fourier": "Fourier"}
COLOURS = {"attention": "#0072b2", "dense_synthesizer": "#d55e00", "fourier": "#009e73"}


class Given(Loss):
    """A loss whose gradient is given as y; its value is meaningless."""

    def forward(self, outputs, y):
        """Return a number, and y."""
        return outputs[0, 0, 0], y

    def backward(self, dloss, cache):
        """Return y, whatever dloss is."""
        return cache


def build(what, mixer, length):
    """Return an encoder of one layer, or its mixer."""
    config = nf.EncoderConfig(
        d_model=D_MODEL, n_layers=1, n_heads=HEADS, d_ff=D_FF, max_len=length, mixer=mixer
    )
    if what == "layer":
        return nf.Encoder(config, seed=0)
    settings = config.mixer_settings()
    return MIXER_TYPES[mixer].build(settings, seed=0, dtype="float32").flatten()


def team_of(what, mixer, length):
    """Return a team of threads for one layer, which takes x and the gradient of its output."""
    return Team(build(what, mixer, length), THREADS, loss=Given())


def both_ways(team, x, dy):
    """Run one forward and one backward pass."""
    team.step(Batch((Sequences(x),), dy, counts=np.ones(len(x))))


def measure(what, length, rounds):
    """Time all mixers at one length, in turn, and trace their memory; return the figures."""
    batch = TOKENS // length
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, batch, length, D_MODEL), dtype="float32")
    given = dy.copy()
    teams = {mixer: team_of(what, mixer, length) for mixer in MIXERS}

    turns = {
        m: lambda n, team=team: timed(lambda: both_ways(team, x, dy), n)
        for m, team in teams.items()
    }
    with Others() as others:
        taken = interleave(turns, warm_up=2, **rounds)
    for team in teams.values():
        team.__exit__()
    teams.clear()
    turns.clear()
    if not np.array_equal(dy, given):
        raise RuntimeError("a backward pass wrote into the gradient that it was given")
    return [
        {
            "what": what,
            "mixer": mixer,
            "length": length,
            "batch": batch,
            "rounds": len(taken[mixer]),
            "ms": summary(taken[mixer]),
            "peak_mib": round(peak_mib(what, mixer, length, x, dy), 1),
            "others_share": others.share,
        }
        for mixer in MIXERS
    ]


def peak_mib(what, mixer, length, x, dy):
    """Return the peak of NumPy's memory in two steps, gradients included."""
    waiting = team_of(what, mixer, length)
    tracemalloc.start()
    with waiting as team:
        for _ in range(2):
            both_ways(team, x, dy)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return peak


def run(lengths=LENGTHS, **rounds):
    rounds = rounds or {"seconds": 12.0, "least": 5, "most": 15}
    figures = []
    for length in lengths:
        for what in WHAT:
            figures += measure(what, length, rounds)
            for f in figures[-len(MIXERS) :]:
                print(f, flush=True)
    growth = {what: {m: exponents(figures, what, m) for m in MIXERS} for what in WHAT}
    found = {"measured": figures, "growth": growth}
    write("lengths", found, table(found))
    plot(figures)


# What the figures say -----------------------------------------------------------------------------


def row_of(figures, what, mixer):
    """Return one mixer's figures, starting with the shortest length."""
    return [f for f in figures if (f["what"], f["mixer"]) == (what, mixer)]


def exponents(figures, what, mixer):
    """Return p in time ~ length^p and in memory ~ length^p, for a fixed number of tokens."""
    row = [f for f in row_of(figures, what, mixer) if f["length"] >= FITTED]
    if len(row) < 2:
        return {"time": math.nan, "memory": math.nan}
    lengths = np.log([f["length"] for f in row])
    return {
        name: significant(np.polyfit(lengths, np.log(values), 1)[0])
        for name, values in (
            ("time", [f["ms"]["median"] for f in row]),
            ("memory", [f["peak_mib"] for f in row]),
        )
    }


def faster_from(figures, what, first, second):
    """Return the length from which on the first is always faster, or None."""
    since = None
    for a, b in zip(row_of(figures, what, first), row_of(figures, what, second), strict=True):
        if a["ms"]["median"] >= b["ms"]["median"]:
            since = None
        elif since is None:
            since = a["length"]
    return since


def verdicts(figures):
    """Return a line for each pair of mixers and each thing measured."""
    shortest = min(f["length"] for f in figures)
    lines = []
    for what, named in WHAT.items():
        for first, second in (
            ("fourier", "attention"),
            ("fourier", "dense_synthesizer"),
            ("dense_synthesizer", "attention"),
        ):
            since = faster_from(figures, what, first, second)
            when = f"faster than {NAMES[second]} from length {since} on"
            if since is None:
                when = f"not faster than {NAMES[second]} at the greatest length"
            elif since == shortest:
                when = f"faster than {NAMES[second]} at every length"
            apart = [
                b["ms"]["median"] / a["ms"]["median"]
                for a, b in zip(
                    row_of(figures, what, first), row_of(figures, what, second), strict=True
                )
            ]
            lines.append(
                f"- {named.capitalize()}: {NAMES[first]} is {when} "
                f"({apart[0]:.2f} times at length {shortest}, {apart[-1]:.2f} times at "
                f"{max(f['length'] for f in figures)})."
            )
    return lines


def table(found):
    """Return times and memory with one row per length, how they grow, and who is faster."""
    figures, growth = found["measured"], found["growth"]
    by = {(f["what"], f["mixer"], f["length"]): f for f in figures}
    rows = []
    for length in dict.fromkeys(f["length"] for f in figures):
        cells = []
        for mixer in MIXERS:
            layer, alone = by["layer", mixer, length], by["mixer", mixer, length]
            cells += [f"{f['ms']['median']:.1f}" for f in (layer, alone)]
            cells.append(f"{layer['peak_mib']:.0f}")
        rows.append((length, layer["batch"], *cells))
    whats = "layer, ms", "mixer, ms", "layer, MiB"
    exponents = [
        (named, *(f"{growth[what][m][key]:.2f}" for m in MIXERS for key in ("time", "memory")))
        for what, named in WHAT.items()
    ]
    first = f"exponent p of length^p, from {FITTED} on, for a fixed number of tokens"
    shares = [f["others_share"] or 0.0 for f in figures]
    parts = (
        markdown(("length", "batch", *named(whats)), rows, left=0),
        f"Forward and backward of {TOKENS} tokens, d_model {D_MODEL}, {HEADS} heads, d_ff {D_FF}, "
        f"float32, {THREADS} threads; medians of interleaved rounds. Threads share the batch, or, "
        "of one sequence, each call; with Fourier, BLAS's threads share its products instead. A "
        "mixer's projections count as its own. Memory is the peak of what NumPy allocates, "
        "gradients included. Other programs took "
        f"at most {100 * max(shares):.0f} % of the machine.",
        markdown((first, *named(("time", "memory"))), exponents),
        "\n".join(verdicts(figures)),
    )
    return "\n\n".join(parts)


def named(columns):
    """Return the heads of some columns for each mixer, the first with its name."""
    first, *others = columns
    return [head for m in MIXERS for head in (f"{NAMES[m]}: {first}", *others)]


# The plot -----------------------------------------------------------------------------------------


def plot(figures):
    """Plot time and memory against the length in benchmarks/results/lengths.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for mixer in MIXERS:
        layer, alone = row_of(figures, "layer", mixer), row_of(figures, "mixer", mixer)
        draw(left, layer, [f["ms"]["median"] for f in layer], mixer, "-")
        draw(left, alone, [f["ms"]["median"] for f in alone], mixer, ":")
        draw(right, layer, [f["peak_mib"] for f in layer], mixer, "-")
    left.set_title(f"ms for {TOKENS} tokens, forward and backward", loc="left", fontsize=10.5)
    left.plot([], [], "-", color="0.35", label="one encoder layer")
    left.plot([], [], ":", color="0.35", label="its mixer alone")
    handles = left.get_lines()[-2:]
    left.legend(handles=handles, frameon=False, loc="best", labelcolor="0.35")
    right.set_title("MiB at the peak, one encoder layer", loc="left", fontsize=10.5)
    lengths = list(dict.fromkeys(f["length"] for f in figures))
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks(lengths, [str(n) for n in lengths])
        ax.set_xlabel("sequence length, tokens")
        ax.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda y, _: f"{y:g}"))
        ax.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        ax.grid(axis="y", color="0.92")
        name_lines(ax)
    figure.savefig(RESULTS / "lengths.png", dpi=180)
    plt.close(figure)


def draw(ax, row, values, mixer, style):
    """Draw one line, with a name if it is solid."""
    name = NAMES[mixer] if style == "-" else "_"
    lengths = [f["length"] for f in row]
    ax.plot(lengths, values, style, color=COLOURS[mixer], marker="o", markersize=3.5, label=name)


def name_lines(ax, apart=0.055):
    """Write each mixer's name at the end of its line, with at least `apart` between names."""
    ax.get_ylim()  # makes matplotlib compute the limits
    ends = []
    for line in ax.get_lines():
        if line.get_label() in NAMES.values():
            _, y = ax.transAxes.inverted().transform(
                ax.transData.transform((line.get_xdata()[-1], line.get_ydata()[-1]))
            )
            ends.append((y, line.get_label(), line.get_color()))
    below = -1.0
    for y, name, colour in sorted(ends):
        below = max(y, below + apart)
        ax.text(1.0, below, name, transform=ax.transAxes, va="center", color=colour)
