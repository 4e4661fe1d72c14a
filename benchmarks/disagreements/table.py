"""The table of answers: what is stored, which cells differ, and which of them changed."""

import json
from typing import Any

import numpy as np

from benchmarks.disagreements.asking import packages
from benchmarks.disagreements.question import Part, Question
from benchmarks.results_files import RESULTS

STORED = RESULTS / "disagreements.json"

UNITS = 16
"""A cell differs if it is farther than this many float32 units in the last place."""

TOLERANCES = {"float64": 1e-12}
"""How far calls with random settings may be from npformer's values, by the answer's dtype."""

FLOAT32_TOLERANCE = 1e-6

Table = dict[str, Any]


def stored_table() -> Table:
    """Return the stored table; an empty one if there is none."""
    if not STORED.exists():
        return {"libraries": {}, "parts": {}}
    table: Table = json.loads(STORED.read_text("utf-8"))
    return table


def update_table(table: Table, parts: list[Part], answers_of: dict[str, dict[str, Any]]) -> Table:
    """Return a table with new answers of some libraries, and those of the others as they were.

    An answer that was another one in `table` keeps what it was under "was".
    """
    libraries = table["libraries"] | {library: packages(library) for library in answers_of}
    new_parts = {}
    for part in parts:
        old = table["parts"].get(part.name, {"questions": {}, "random": {}})
        rows = {}
        for question in part.questions:
            old_row = old["questions"].get(question.name, {})
            rows[question.name] = _row(
                f"{part.name}/{question.name}", question, old_row, answers_of
            )
        random = {library: it for library, it in old["random"].items() if library not in answers_of}
        for library, answers in answers_of.items():
            distance = _distance(part, answers)
            if distance is not None:
                random[library] = distance
        new_parts[part.name] = {"questions": rows, "random": dict(sorted(random.items()))}
    return {"libraries": dict(sorted(libraries.items())), "parts": new_parts}


def _row(
    key: str, question: Question, old_row: dict[str, Any], answers_of: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the answers to one question, by library."""
    cells = {
        library: cell
        for library, cell in old_row.items()
        if library not in answers_of and library != "npformer"
    }
    for library, answers in answers_of.items():
        if key in answers:
            cells[library] = _cell(answers[key], old_row.get(library))
    ours = {name: value.tolist() for name, value in question.answers.items()}
    return {"npformer": ours, **dict(sorted(cells.items()))}


def _cell(answer: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    """Return an answer as it is stored, with the former one if it was another."""
    if "error" in answer:
        cell = {"error": answer["error"]}
    else:
        cell = {name: value["values"] for name, value in answer.items()}
        cell["dtype"] = answer["y"]["dtype"]
    if old is not None:
        was = {name: value for name, value in old.items() if name != "was"}
        if json.dumps(was, sort_keys=True) != json.dumps(cell, sort_keys=True):
            cell["was"] = was
    return cell


def _distance(part: Part, answers: dict[str, Any]) -> dict[str, Any] | None:
    """Return how far a library's call is from npformer at the random settings; None if unasked."""
    distance: dict[str, Any] = {"settings": 0}
    for k, question in enumerate(part.random):
        answer = answers.get(f"{part.name}/random/{k}")
        if answer is None:
            return None
        if "error" in answer:
            return {"settings": k, "error": answer["error"]}
        distance["settings"] = k + 1
        distance["dtype"] = answer["y"]["dtype"]
        for name, value in answer.items():
            gap = relative_gap(np.asarray(value["values"]), question.answers[name])
            kind = "forward" if name == "y" else "gradient"
            distance[kind] = max(distance.get(kind, 0.0), gap)
    return distance if distance["settings"] else None


def relative_gap(answer: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, over 1 or the largest value; infinity if shapes differ."""
    if answer.shape != expected.shape:
        return float("inf")
    if answer.size == 0:
        return 0.0
    gap = float(np.abs(answer - expected).max() / max(1.0, np.abs(expected).max()))
    return gap if np.isfinite(gap) else float("inf")


def tolerance(distance: dict[str, Any]) -> float:
    """Return how far a call may be from npformer's values."""
    return TOLERANCES.get(distance["dtype"], FLOAT32_TOLERANCE)


def gradient_tolerance(distance: dict[str, Any]) -> float:
    """Return how far a call's gradients may be from npformer's: they sum more rounding errors."""
    return 10.0 * tolerance(distance)


def differs(cell: dict[str, Any], expected: dict[str, Any], name: str) -> bool:
    """Return whether an answer differs from npformer's by more than rounding."""
    if "error" in cell or name not in expected:  # npformer has no answer if it refuses
        return ("error" in cell) == (name in expected)
    answer = np.asarray(cell[name], dtype="float64")
    value = np.asarray(expected[name], dtype="float64")
    if answer.shape != value.shape:
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        largest = np.abs(value[np.isfinite(value)]).max(initial=0.0)
        scale = np.where(value == 0.0, largest or 1.0, np.abs(value))
        unit = np.spacing(scale.astype("float32")).astype("float64")
        near = np.abs(answer - value) <= UNITS * unit
    same = (answer == value) | (np.isnan(answer) & np.isnan(value))
    return not bool((near | same).all())


def quantities(question: Question, row: dict[str, Any]) -> list[str]:
    """Return which answers to a question have a column: y, and gradients that some library has."""
    names = [name for name in question.answers if name != "y"]
    cells = [cell for library, cell in row.items() if library != "npformer"]
    shown = [name for name in names if any(name in cell for cell in cells)]
    return ["y", *shown]


def table_text(table: Table) -> str:
    """Return the table as it is stored: a line for each answer."""
    beginning = '{"libraries": ' + json.dumps(table["libraries"]) + ', "parts": {'
    part_texts = []
    for name, part in table["parts"].items():
        rows = []
        for question, row in part["questions"].items():
            cells = [f"  {json.dumps(key)}: {json.dumps(cell)}" for key, cell in row.items()]
            rows.append(f" {json.dumps(question)}: {{\n" + ",\n".join(cells) + "\n }")
        random = [
            f"  {json.dumps(key)}: {json.dumps(distance)}"
            for key, distance in part["random"].items()
        ]
        part_texts.append(
            f'{json.dumps(name)}: {{"questions": {{\n'
            + ",\n".join(rows)
            + '\n}, "random": {\n'
            + ",\n".join(random)
            + "\n}}"
        )
    return beginning + "\n" + ",\n".join(part_texts) + "\n}}\n"
