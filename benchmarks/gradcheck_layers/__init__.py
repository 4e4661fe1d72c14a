"""Wrong and right layers, by people who did not write gradcheck: what it finds and misses."""

import time
from importlib import import_module

from benchmarks.gradcheck_layers.cases import CASES
from benchmarks.gradcheck_layers.differences import reached

THEMES = {
    "wrong": (
        *("sizes", "branches", "parameters", "memory", "masks", "random", "indices", "formulas"),
    ),
    "right": ("points", "scales", "protocol", "calls"),
}


def cases():
    """Return all cases, the wrong ones first."""
    for kind, themes in THEMES.items():
        for theme in themes:
            import_module(f"benchmarks.gradcheck_layers.{kind}_{theme}")
    return CASES


def verdict(case, outcome):
    """Return found, missed, passed or false alarm."""
    if case.right:
        return "passed" if outcome == "passed" else "false alarm"
    return "missed" if outcome == "passed" else "found"


def run():
    """Check every layer, and write a row for each."""
    from benchmarks.results_files import write

    began, rows = time.perf_counter(), []
    for case in cases():
        outcome, said = case.gradcheck()
        shows = None if case.right else reached(case)
        rows.append(
            {
                "name": case.name,
                "says": case.says,
                "right": case.right,
                "shows": shows,
                "verdict": verdict(case, outcome),
                "outcome": outcome,
                "said": said,
            }
        )
    figures = {"seconds": time.perf_counter() - began, "cases": rows}
    write("gradcheck_layers", figures, table(figures))


def raised(row):
    """Return the error by which a layer was found, if it was not a report."""
    return f" ({row['outcome']})" if row["outcome"].startswith("raised") else ""


def table(figures):
    """Return the counts, and a row for each layer."""
    rows = figures["cases"]

    def count(**wanted):
        return sum(all(row[k] == v for k, v in wanted.items()) for row in rows)

    wrong, right = count(right=False), count(right=True)
    lines = [
        f"{wrong} wrong layers: {count(verdict='found')} found. Of the "
        f"{count(right=False, shows=True)} whose mistake shows with the inputs given, "
        f"{count(verdict='missed', shows=True)} are missed; of the {count(shows=False)} whose "
        f"mistake shows with other inputs alone, {count(verdict='missed', shows=False)}. "
        f"{right} right layers: {count(verdict='false alarm')} false alarms.",
        "",
        "| layer | what is wrong, or unusual | shows with the inputs given | verdict |",
        "|---|---|---|---|",
    ]
    for row in rows:
        shows = "" if row["right"] else "yes" if row["shows"] else "no"
        lines.append(
            f"| {row['name']} | {row['says'].replace('|', chr(92) + '|')} | {shows} "
            f"| {row['verdict']}{raised(row)} |"
        )
    return "\n".join(lines)
