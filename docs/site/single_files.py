"""Write what the examples in single files print into pages: ``python -m docs.site.single_files``.

The README and the first page of the site have a section between markers. The command counts the
lines of the files, runs them, and writes the section of each page anew.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from docs.site.reading_list import lines_of_code

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python -m docs.site.single_files"
PAGES = {ROOT / "README.md": "examples", ROOT / "docs" / "index.md": "../examples"}
"""The pages, and where the examples are, as seen from a page."""

SECTION = re.compile(
    r"(?<=^<!-- begin single files: )(?P<head>[^\n]* -->\n).*?(?=^<!-- end single files -->$)",
    re.MULTILINE | re.DOTALL,
)
OUTPUT = re.compile(
    r"^python examples/(?P<name>\w+)\.py\n```\n\n```text\n(?P<printed>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class SingleFile(NamedTuple):
    """An example, what it shows, and how many lines of its output stand at either end."""

    name: str
    shows: str
    first: int
    last: int


FILES = [
    SingleFile(
        "whole_encoder",
        "An encoder with every backward pass, a gradient check, Adam and the training loop. It "
        "learns to read handwritten digits. It needs NumPy alone.",
        first=2,
        last=2,
    ),
    SingleFile(
        "gpt_in_one_file",
        "A GPT of characters. It learns Shakespeare's plays, or a text of yours, and writes on, "
        "with a KV cache. It needs NumPy alone.",
        first=2,
        last=8,
    ),
    SingleFile(
        "one_step_by_hand",
        "One training step, one line for each operation, forward, backward and Adam. It gives the "
        "same loss and gradients as the library's model, bit for bit.",
        first=4,
        last=1,
    ),
]


def run(name: str) -> str:
    """Return what an example prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout


def excerpt(printed: str, first: int, last: int) -> str:
    """Return the first and the last lines, with dots for those between them."""
    lines = printed.splitlines()
    if len(lines) > first + last:
        lines[first:-last] = ["..."]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def outputs_in(page: str) -> dict[str, str]:
    """Return the excerpts that a page shows, by the example's name."""
    return {block["name"]: block["printed"] for block in OUTPUT.finditer(page)}


def entry(file: SingleFile, folder: str, printed: str) -> str:
    """Return what a page says about one file."""
    path = f"examples/{file.name}.py"
    text = (ROOT / path).read_text("utf-8")
    link = f"**[`{path}`]({folder}/{file.name}.py)**"
    counts = f"{len(text.splitlines())} lines, {lines_of_code(text)} of them code"
    paragraph = textwrap.fill(f"{link}: {counts}. {file.shows}", width=120)
    return f"{paragraph}\n\n```sh\npython {path}\n```\n\n```text\n{printed}```\n"


def rewritten(page: str, folder: str, outputs: dict[str, str]) -> str:
    """Return a page's text with the current section."""
    entries = "\n".join(entry(file, folder, outputs[file.name]) for file in FILES)
    text, n_sections = SECTION.subn(lambda found: f"{found['head']}\n{entries}\n", page)
    if n_sections != 1:
        raise ValueError(f"{n_sections} places for the single files; expected one")
    return text


def main() -> None:
    """Run the files, and write the sections."""
    outputs = {file.name: excerpt(run(file.name), file.first, file.last) for file in FILES}
    for page, folder in PAGES.items():
        page.write_text(rewritten(page.read_text("utf-8"), folder, outputs), "utf-8")


if __name__ == "__main__":
    main()
