"""When do several ranks pay off? 2 to 1,024 of them over three networks, simulated."""

import argparse
import json

from benchmarks.network import report
from benchmarks.network.measure import measure
from benchmarks.network.networks import NETWORKS
from benchmarks.network.predictions import CORES, Predictions
from benchmarks.network.schedules import SCHEDULES
from benchmarks.results_files import RESULTS, write

FILE = RESULTS / "ranks-model.json"
LOOKED_AT = (16, 128, 1024)
"""Numbers of ranks whose steps are analysed."""
REMEDIED = (64, 1024)
LAYOUTS = (64, 1024)


def run(words):
    """Simulate, and write tables and plot; measure first if asked, or if nothing was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks ranks-model", description=__doc__)
    parser.add_argument(
        "--measure",
        nargs="?",
        const="all",
        choices=("all", "exchanges"),
        help="measure this machine first, or only exchanges (two minutes)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the noise (default: 0)")
    chosen = parser.parse_args(words)
    if chosen.measure or not FILE.exists():
        before = None
        if chosen.measure == "exchanges":
            before = json.loads(FILE.read_text())["figures"]["measured"]
        measured = json.loads(json.dumps(measure(before)))
        FILE.write_text(json.dumps({"figures": {"measured": measured}}))  # until everything is done
    measured = json.loads(FILE.read_text())["figures"]["measured"]
    figures = simulate(Predictions(measured, chosen.seed))
    blocks = {
        "ranks-model inputs": report.inputs(measured),
        "ranks-model scaling": report.scaling(measured, figures["efficiencies"]),
        "ranks-model breaks": report.breaks(figures["breaks"], figures["losses"]),
        "ranks-model remedies": report.remedies(figures["remedies"], REMEDIED),
        "ranks-model layouts": report.layouts(figures["layouts"]),
    }
    report.plot(figures["efficiencies"], RESULTS / "ranks-model.png")
    figures = rounded({"measured": measured, "seed": chosen.seed, **figures}, skip="measured")
    write("ranks-model", figures, "\n\n".join(blocks.values()), blocks)


def simulate(predictions):
    """Return all that the tables show."""
    sizes = list(predictions.measured["models"])
    efficiencies = predictions.efficiencies()
    cores, link = CORES[-1], NETWORKS[1]
    return {
        "efficiencies": efficiencies,
        "breaks": predictions.breaks(efficiencies),
        "losses": [
            {
                "scaling": scaling,
                "size": size,
                "ranks": n,
                "losses": predictions.losses(scaling, size, cores, link, n),
            }
            for scaling in ("weak", "strong")
            for size in ("M", "BERT")
            for n in LOOKED_AT
        ],
        "remedies": {
            f"{size}, {link.name}, {n}": predictions.remedies(size, link, n, cores)
            for size in sizes
            for link in NETWORKS
            for n in REMEDIED
        },
        "layouts": {
            f"{size}; {link.name}; {n}": {
                name: predictions.shared_machines(size, link, n, name) for name in SCHEDULES
            }
            for size in ("M", "BERT")
            for link in NETWORKS
            for n in LAYOUTS
        },
    }


def rounded(values, skip=None):
    """Return the same with four digits, more than a simulation can know."""
    if isinstance(values, dict):
        return {k: v if k == skip else rounded(v) for k, v in values.items()}
    if isinstance(values, list | tuple):
        return [rounded(v) for v in values]
    return float(f"{values:.4g}") if isinstance(values, float) else values
