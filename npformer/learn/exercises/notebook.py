"""Exercises as notebooks, in version 4.5 of their format.

A notebook is JSON with four keys, and each cell has at most five: they are written here, so that
the exercises need no package beyond npformer's own. A test checks the result with the schema.
"""

import io
import json
import re
from typing import Any

HEADING = re.compile(r"^# %% ?(.*)\n", re.MULTILINE)
"""What splits a file into cells, as in editors that know cells."""

OF_PYTHON = "%%time", "%%timeit", "%%capture", "%%prun"
"""Magic at the top of a cell whose rest is Python."""


def from_source(text: str, name: str) -> str:
    """Return a notebook with the cells of a file, and a cell that checks it."""
    question, _, rest = text.removeprefix('"""').partition('\n"""\n')
    first, _, after = question.partition("\n")
    cells = [("markdown", f"# {first.rstrip('.')}\n{after}")]
    imports, *sections = HEADING.split(rest)
    cells.append(("code", imports))
    for heading, code in zip(sections[::2], sections[1::2], strict=True):
        cells += [("markdown", f"## {heading}"), ("code", code)]
    check = "## Check\nSave the notebook first: what is marked is the file."
    return notebook_of_cells(
        [*cells, ("markdown", check), ("code", f"!npformer exercises check {name}")]
    )


def notebook_of_cells(cells: list[tuple[str, str]]) -> str:
    """Return the notebook of (kind, text), of which the kind is "markdown" or "code"."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": [_cell(f"cell-{number}", *cell) for number, cell in enumerate(cells, 1)],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _cell(id: str, kind: str, text: str) -> dict[str, Any]:
    lines = text.strip().splitlines(keepends=True)
    cell = {"cell_type": kind, "id": id, "metadata": {}, "source": lines}
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell


def to_source(text: str, name: str) -> tuple[str, list[str]]:
    """Return the Python of a notebook's code cells, and what to call each of its lines.

    Raises ValueError if the text is not a notebook.
    """
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{name} is not a notebook; it cannot be read as one") from None
    lines: list[str] = []
    places: list[str] = []
    for number, source in enumerate(sources, 1):
        if source.startswith("%%") and not source.startswith(OF_PYTHON):
            continue  # a cell in another language
        for i, line in enumerate(io.StringIO(source), 1):  # at "\n" alone, as Python does
            # Lines that begin with ! or % are for the notebook alone.
            lines.append(re.sub(r"^(\s*)[!%].*", r"\1pass", line.rstrip("\n")))
            places.append(f"line {i} of code cell {number}")
    return "\n".join(lines) + "\n", places
