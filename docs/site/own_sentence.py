"""A small language model in a page: ``<!-- own sentence -->`` becomes a figure of docs/live.

Its script, with the arithmetic of the exported page, is loaded where the figure is. The model's
file, which `docs.site.small_model` writes, is loaded when a reader begins.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.site.live import MODEL, ROOT
from docs.site.small_model import FILE

ARITHMETIC = ROOT / "docs" / "live" / "small_writer.js"
INTERFACE = ROOT / "docs" / "live" / "own_sentence.js"
COMMENT = "<!-- own sentence -->"
BEGINNING = '<figure class="own-sentence"'


def arithmetic() -> str:
    """Return what turns a text into tokens, and tokens into the next one."""
    model = re.sub(r"^export ", "", MODEL.read_text("utf-8"), flags=re.MULTILINE)
    return f"{model}\n{ARITHMETIC.read_text('utf-8')}"


def script() -> str:
    """Return the one script."""
    return f'(() => {{\n"use strict";\n{arithmetic()}\n{INTERFACE.read_text("utf-8")}}})();\n'


def figure() -> str:
    """Return the figure, which says how large the model's file is."""
    return f'{BEGINNING} data-size="{FILE.stat().st_size / 1e6:.1f} MB"></figure>'


def replace(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the figure into a page that is read."""
    source[0] = source[0].replace(f"{COMMENT}\n", f"```{{raw}} html\n{figure()}\n```\n")


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Load the script on pages that have the figure."""
    if BEGINNING in context.get("body", ""):
        app.add_js_file("own_sentence.js")
        app.add_css_file("own_sentence.css")


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the script, and put the model's file beside it."""
    if error is None and app.builder.format == "html":
        place = Path(app.outdir) / "_static"
        (place / "own_sentence.js").write_text(script(), "utf-8")
        shutil.copyfile(FILE, place / FILE.name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is read."""
    app.connect("source-read", replace)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
