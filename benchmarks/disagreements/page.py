"""Write `docs/disagreements.md` from the stored table: tables, reasons, and calls that agree."""

from typing import Any

import numpy as np

from benchmarks.disagreements.asking import source_of_calls
from benchmarks.disagreements.parts import PARTS
from benchmarks.disagreements.question import Part, Question
from benchmarks.disagreements.reasons import Reason, reason_number, reasons_of
from benchmarks.disagreements.table import (
    UNITS,
    Table,
    differs,
    gradient_tolerance,
    quantities,
    tolerance,
)
from benchmarks.disagreements.without_calls import reason_without_call
from benchmarks.results_files import ROOT, markdown

PAGE = ROOT / "docs" / "disagreements.md"

OURS = "**npformer, float64**"

HEAD = """\
# Where libraries disagree, and what the right value is

Written by `python -m benchmarks disagreements` from `benchmarks/results/disagreements.json`; the
scripts of the libraries are in `benchmarks/disagreements/libraries/`.

Whoever ports a layer, a model or a set of weights meets differences that no documentation names.
Here the same numbers went through {n_libraries} libraries, part by part, on one thread of a CPU,
each in an environment for it alone: {versions}.

The first row of a table is npformer's value in float64 for the same inputs: they are rounded to
float32 first, or to the dtype that the question names. A cell is **bold** if it differs by more
than {units} units in the last place of float32, is NaN, raises an error, or has another shape; the
number behind it leads to the reason. An empty cell means that the library has no such function of
its own, or no gradient. `was` marks a cell that changed since the table was last written. The last
column tells how near a call of the library comes to npformer, or in words why there is none.

Of {n_cells} cells with a number in {n_parts} parts, {n_marked} differ. Below each table stand the
calls that give npformer's numbers at {settings} random settings, weights carried over: to 1e-12 of
the largest value where a library computes in float64, and to 1e-6 where it has only float32;
gradients, where a library gives them, to ten times that. The calls are those of the scripts, which
ran; arrays have npformer's shapes, and `W` is (in, out).
"""


def page_text(table: Table) -> str:
    """Return the page of a table."""
    sections = [part_text(part, table) for part in PARTS]
    counts = count_cells(table)
    versions = ", ".join(
        pinned[0].replace("==", " ").replace("[cpu]", "") for pinned in table["libraries"].values()
    )
    head = HEAD.format(
        n_libraries=len(table["libraries"]),
        versions=versions,
        units=UNITS,
        settings="ten",
        n_parts=len(PARTS),
        **counts,
    )
    contents = "\n".join(f"- [{part.title}](#{anchor(part.title)})" for part in PARTS)
    return "\n".join([head, contents, "", *sections])


def anchor(title: str) -> str:
    """Return the end of a link to a heading."""
    letters = "".join(c for c in title.lower() if c.isalnum() or c in " -")
    return letters.replace(" ", "-")


def count_cells(table: Table) -> dict[str, int]:
    """Return how many cells with a number the table has, and how many cells differ."""
    n_cells = n_marked = 0
    for part in PARTS:
        for question in part.questions:
            row = table["parts"][part.name]["questions"][question.name]
            for library, cell in row.items():
                if library == "npformer":
                    continue
                for name in quantities(question, row):
                    if name in cell:
                        n_cells += 1
                    if name in cell or ("error" in cell and name == "y"):
                        n_marked += differs(cell, row["npformer"], name)
    return {"n_cells": n_cells, "n_marked": n_marked}


def part_text(part: Part, table: Table) -> str:
    """Return the section of a part."""
    stored = table["parts"][part.name]
    reasons = reasons_of(part)
    lines = [f"## {part.title}", "", part.text, ""]
    columns = [
        (question, name)
        for question in part.questions
        for name in quantities(question, stored["questions"][question.name])
    ]
    titles = []
    for k, question in enumerate(part.questions):
        letter = "abcdefghij"[k]
        lines.append(f"- ({letter}) {question.text}{dtype_text(question)}")
        titles += [f"{letter}: {name}" for asked, name in columns if asked.name == question.name]
    rows = [[OURS, *(numbers(question.answers.get(name)) for question, name in columns), ""]]
    for library in table["libraries"]:
        cells = [
            cell_text(question, name, library, stored["questions"][question.name], reasons)
            for question, name in columns
        ]
        rows.append([library, *cells, agreement_text(part, library, stored["random"])])
    lines += ["", markdown(["", *titles, "a call agrees"], rows), ""]
    for k, reason in enumerate(reasons, start=1):
        lines.append(f"{k}. {reason_text(reason)}")
    lines += ["", calls_text(part, stored["random"])]
    return "\n".join(lines)


def agreement_text(part: Part, library: str, random: dict[str, Any]) -> str:
    """Return how far a call may be from npformer's numbers, or why there is no call."""
    if library in random:
        return f"to {tolerance(random[library]):.0e}"
    reason = reason_without_call(library, part.name)
    return "" if reason is None else reason.text()


def dtype_text(question: Question) -> str:
    """Return what a question's dtype is, unless it is float32."""
    return "" if question.dtype == "float32" else f", in {question.dtype}"


def cell_text(
    question: Question,
    name: str,
    library: str,
    row: dict[str, Any],
    reasons: list[Reason],
) -> str:
    """Return a cell: the numbers, bold with the number of the reason where they differ."""
    cell = row.get(library)
    if cell is None or (name not in cell and ("error" not in cell or name != "y")):
        return ""
    text = "error" if "error" in cell else numbers(cell[name])
    if differs(cell, row["npformer"], name):
        number = reason_number(reasons, question.name, library)
        text = f"**{text}**" + (f" ({number})" if number else "")
    was = cell.get("was", {})
    if name in was and was[name] != cell.get(name):
        text += f" was {numbers(was[name])}"
    return text


def numbers(values: Any) -> str:
    """Return up to four numbers with six digits; None stands for an error."""
    if values is None:
        return "error"
    flat = np.asarray(values).ravel()
    texts = [number_text(float(value)) for value in flat[:4]]
    return ", ".join(texts) + (", ..." if flat.size > 4 else "")


def number_text(value: float) -> str:
    """Return a number with six digits."""
    if np.isnan(value):
        return "NaN"
    return f"{value + 0.0:.6g}"


def reason_text(reason: Reason) -> str:
    """Return a reason, and npformer's expression that gives the library's numbers."""
    text = reason.because.strip()
    if reason.npformer:
        text += f" npformer gives these numbers with `{reason.npformer}`."
    return text


def calls_text(part: Part, random: dict[str, Any]) -> str:
    """Return the calls that give npformer's numbers, with how far they are from them."""
    blocks: list[str] = []
    for library, distance in random.items():
        head = f"# {library}: {distance_text(distance)}"
        blocks.append(f"{head}\n{source_of_calls(library)[part.random[0].call]}")
    if not blocks:
        return ""
    return "```py\n" + "\n\n".join(blocks) + "\n```\n"


def distance_text(distance: dict[str, Any]) -> str:
    """Return how far a call was from npformer at the random settings."""
    if "error" in distance:
        return f"error at setting {distance['settings']}: {distance['error']}"
    text = f"within {tolerance(distance):.0e} in {distance['dtype']}"
    if distance["forward"] > tolerance(distance):
        text = f"{distance['forward']:.1e} away in {distance['dtype']}"
    if "gradient" in distance:
        text += f", gradients within {gradient_tolerance(distance):.0e}"
    return text


def summary(table: Table) -> str:
    """Return what the command prints: counts, calls that miss, and cells without a reason."""
    counts = count_cells(table)
    lines = [f"{len(PARTS)} parts, {counts['n_cells']} cells, {counts['n_marked']} marked"]
    lines += [f"no reason: {cell}" for cell in cells_without_reason(table)]
    lines += [f"no agreement: {call}" for call in calls_that_miss(table)]
    lines += [f"neither call nor words: {pair}" for pair in pairs_without_words(table)]
    return "\n".join(lines)


def cells_without_reason(table: Table) -> list[str]:
    """Return the marked cells that no reason names, as part/question library."""
    missing = []
    for part in PARTS:
        reasons = reasons_of(part)
        for question in part.questions:
            row = table["parts"][part.name]["questions"][question.name]
            for library, cell in row.items():
                if library == "npformer":
                    continue
                marked = any(
                    differs(cell, row["npformer"], name)
                    for name in quantities(question, row)
                    if name in cell or ("error" in cell and name == "y")
                )
                if marked and reason_number(reasons, question.name, library) is None:
                    missing.append(f"{part.name}/{question.name} {library}")
    return missing


def calls_that_miss(table: Table) -> list[str]:
    """Return the calls with random settings that do not give npformer's numbers."""
    return [
        f"{name} {library}: {distance}"
        for name, part in table["parts"].items()
        for library, distance in part["random"].items()
        if "error" in distance
        or distance["forward"] > tolerance(distance)
        or distance.get("gradient", 0.0) > gradient_tolerance(distance)
    ]


def pairs_without_words(table: Table) -> list[str]:
    """Return the pairs of part and library, as part library, with neither a call nor a reason."""
    return [
        f"{part.name} {library}"
        for part in PARTS
        for library in table["libraries"]
        if library not in table["parts"][part.name]["random"]
        and reason_without_call(library, part.name) is None
    ]
