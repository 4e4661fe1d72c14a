"""Solutions as text, and the table of the exercises' page."""

import difflib
import re
import textwrap

from npformer.learn.exercises.exercise import BLANK, Exercise
from npformer.learn.exercises.table import every


def solution(one: Exercise) -> str:
    """Return a derivation, what to write in place of the blanks, and where to read on."""
    paragraphs = [one.why, *_code(one), f"Read on: docs/{one.page}"]
    return "\n\n".join(paragraphs)


def _code(one: Exercise) -> list[str]:
    if one.breaks:  # instead of a blank, bugs: show what changes
        broken, mended = one.blank.splitlines(), one.solution.splitlines()
        changes = list(difflib.unified_diff(broken, mended, n=1, lineterm=""))[2:]
        return ["What changes (- broken, + mended):", "\n".join(changes)]
    solutions = []
    for blank in BLANK.finditer(one.solved):
        head = re.findall(r"^ *def (\w+)", one.solved[: blank.start()], re.MULTILINE)[-1]
        name = f"{head}:\n" if len(one.parts()) > 1 else ""
        solutions.append(f"{name}{textwrap.indent(textwrap.dedent(blank[2]).rstrip(), '    ')}")
    return solutions


def table() -> str:
    """Return the table of docs/exercises.md."""
    rows = ["| | name | what to write | chapter |", "|---|---|---|---|"]
    for number, one in enumerate(every(), 1):
        page = one.page.rpartition("/")[2].removesuffix(".md").replace("_", " ")
        rows.append(f"| {number} | `{one.name}` | {one.title} | [{page}]({one.page}) |")
    return "\n".join(rows)
