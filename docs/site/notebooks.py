"""Each chapter as a notebook: its text, and its blocks of Python as cells that can be run.

They are written when the site is built, and each chapter leads to its own. Outputs are left out,
since running a cell makes them, and so is what only a page can show: pictures and live pictures.
"""

import re
from pathlib import Path
from typing import Any

import jupytext
from docutils import nodes
from sphinx.application import Sphinx

from docs.site.below_title import below_title, chapter_of
from npformer.learn.exercises.notebook import notebook_of_cells

DOCS = Path(__file__).resolve().parents[1]
FOLDER = "notebooks"

OUTPUT = re.compile(r"^```text\n.*?^```\n", re.MULTILINE | re.DOTALL)
QUOTED_SOURCE = re.compile(r"^<!-- source: .*? -->\n+```python", re.MULTILINE)
"""A function of the package, which is installed: it is text, and not run again."""
PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n", re.MULTILINE)
COMMENT = re.compile(r"^<!-- [^>]*? -->\n", re.MULTILINE)
INLINE_COMMENT = re.compile(r"<!-- .*? -->")
LINK_TO_PAGE = re.compile(r"\[([^\]]+)\]\((?!http)[^)]+\)")
EMPTY_LINES = re.compile(r"\n{3,}")
"""Two of them would split a cell of text."""


def notebook(text: str) -> str:
    """Return the notebook of a chapter."""
    text = OUTPUT.sub("", text)
    text = QUOTED_SOURCE.sub("```py", text)
    text = PICTURE.sub("", text)
    text = COMMENT.sub("", text)
    text = INLINE_COMMENT.sub("", text)
    text = EMPTY_LINES.sub("\n\n", text)
    cells = []
    for cell in jupytext.reads(text, fmt="md").cells:
        is_text = cell.cell_type == "markdown"
        source = LINK_TO_PAGE.sub(r"\1", cell.source) if is_text else cell.source
        cells.append((cell.cell_type, source))
    return notebook_of_cells(cells)


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
