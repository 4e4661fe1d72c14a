"""Each chapter as a notebook: its text, and its blocks of Python as cells that can be run.

They are written when the site is built, and each chapter leads to its own. Outputs are left out,
since running a cell makes them, and so is what only a page can show: pictures and live pictures.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from docs.site.below_title import below_title, chapter_of
from npformer.learn.exercises.notebook import of_cells

DOCS = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"^!\[.*?\]\(.*?\)\n|^<!-- (?!source).*? -->\n", re.MULTILINE)
SOURCE = re.compile(r"<!-- source: .*? -->\n+\Z")
LINK = re.compile(r"\[([^\]]+)\]\((?!http)[^)]+\)")
FOLDER = "notebooks"


def notebook(text: str) -> str:
    """Return the notebook of a chapter."""
    cells: list[tuple[str, str]] = []
    end = 0
    for block in FENCE.finditer(text):
        before, kind = text[end : block.start()], block[1]
        quoted = SOURCE.search(before) is not None  # a function of the package: it is installed
        cells.append(("markdown", before))
        if kind == "python" and not quoted:
            cells.append(("code", block[2]))
        elif kind != "text":
            cells.append(("markdown", block[0]))
        end = block.end()
    cells.append(("markdown", text[end:]))
    return of_cells(_joined(cells))


def _joined(cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return cells of which no two beside each other are text, and none is empty."""
    found: list[tuple[str, str]] = []
    for kind, text in cells:
        if kind == "markdown":
            text = LINK.sub(r"\1", SOURCE.sub("", LEFT_OUT.sub("", text))).strip()
            if not text:
                continue
            if found and found[-1][0] == kind:
                text = f"{found.pop()[1]}\n\n{text}"
        found.append((kind, text))
    return found


def lead_to_it(app: Sphinx, doctree: nodes.document) -> None:
    """Put a link to the notebook below a chapter's title."""
    if chapter := chapter_of(app):
        link = f'<a download href="../{FOLDER}/{chapter}.ipynb">This chapter as a notebook</a>'
        below_title(doctree, f'<p class="notebook">{link}</p>')


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the notebooks."""
    if error is None and app.builder.format == "html":
        out = Path(app.outdir) / FOLDER
        out.mkdir(exist_ok=True)
        for page in sorted((DOCS / "chapters").glob("*.md")):
            (out / f"{page.stem}.ipynb").write_text(notebook(page.read_text("utf-8")), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is read."""
    app.connect("doctree-read", lead_to_it)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
