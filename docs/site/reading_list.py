"""Count the lines of the files that docs/afternoon.md leads through, and write them there.

``python -m docs.site.reading_list`` writes the table between the page's markers; ``--check`` writes
nothing and says whether the table is current.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "afternoon.md"
COMMAND = "python -m docs.site.reading_list"

RATE = 12
"""Lines of code that a reader understands per minute: assumed, not measured."""

PART = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
STOP = re.compile(r"^\*\*\[`(?P<file>[^`]+)`\]\(\.\./(?P<path>[^)]+)\)\*\*", re.MULTILINE)
TABLE = re.compile(
    r"(?<=^<!-- begin files: )(?P<head>.*? -->\n).*?(?=^<!-- end files -->$)", re.M | re.S
)


def lines_of_code(text: str) -> int:
    """Return how many lines are not empty, comments, or parts of a docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if number not in docstrings and line.strip() and not line.lstrip().startswith("#")
    )


def parts(page: str) -> list[tuple[str, list[str]]]:
    """Return the title of each part of the page that has files, and the files in their order."""
    titles = [*PART.finditer(page)]
    ends = [found.start() for found in titles[1:]] + [len(page)]
    of_parts = [
        (found["title"], [stop["path"] for stop in STOP.finditer(page, found.end(), end)])
        for found, end in zip(titles, ends, strict=True)
    ]
    return [(title, files) for title, files in of_parts if files]


def table(page: str) -> str:
    """Return the table of all parts and files, with their lines and minutes."""
    rows = ["| file | lines | lines of code | minutes |", "|---|---:|---:|---:|"]
    total = [0, 0, 0]
    for title, files in parts(page):
        sums, of_files = [0, 0, 0], []
        for file in files:
            text = (ROOT / file).read_text("utf-8")
            code = lines_of_code(text)
            counts = len(text.splitlines()), code, -(-code // RATE)
            sums = [a + b for a, b in zip(sums, counts, strict=True)]
            of_files.append(_row(f"`{file}`", counts))
        rows += [_row(f"**{title}**", sums), *of_files]
        total = [a + b for a, b in zip(total, sums, strict=True)]
    rows.append(_row("**all**", total))
    hours, minutes = divmod(total[2], 60)
    words = f"At {RATE} lines of code per minute: {hours} h {minutes} min."
    return "\n".join(["", *rows, "", words, ""]) + "\n"


def _row(name: str, counts: list[int] | tuple[int, ...]) -> str:
    return f"| {name} | {' | '.join(f'{n:,}' for n in counts)} |"


def rewritten(page: str) -> str:
    """Return the page with the current table."""
    found = TABLE.search(page)
    if found is None:
        raise ValueError(
            f"{PAGE.name} has no place for the table; expected the lines <!-- begin files: written "
            f"by `{COMMAND}` --> and <!-- end files -->"
        )
    head = f"written by `{COMMAND}` -->\n"
    return page[: found.start()] + head + table(page) + page[found.end() :]


def main(words: list[str]) -> int:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    before = PAGE.read_text("utf-8")
    after = rewritten(before)
    if not parser.parse_args(words).check:
        PAGE.write_text(after, "utf-8")
        return 0
    if before != after:
        print(f"{PAGE.relative_to(ROOT)}: the table is not current; write it with {COMMAND}")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
