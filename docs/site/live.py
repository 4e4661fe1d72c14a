"""Live pictures: a comment in a chapter, ``<!-- live: softmax -->``, becomes a figure of docs/live.

Words of a chapter become links that light up numbers of a figure of the same page:
``<!-- light attention: Q[1, :] -->the row of Q<!-- end -->``. Without the site they are just words.

All of their scripts are one classic script on the site, below the arithmetic of the exported page:
browsers load no modules for a page that was opened from a file. Without JavaScript the figure is
empty and not shown.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "npformer" / "learn" / "play" / "static" / "model.js"
NAMES = ("frame", "drawing", "parts", "linking", "rows", "tokens", "training")
SCRIPTS = [ROOT / "docs" / "live" / f"{name}.js" for name in NAMES]
COMMENT = re.compile(r"^<!-- live: ([a-z_]+) -->$", re.MULTILINE)
FIGURE = '<figure class="live" id="live-{0}" data-live="{0}"></figure>'
LIGHT = re.compile(r"<!-- light ([a-z_]+): (.+?) -->(.+?)<!-- end -->", re.DOTALL)
LINK = r'<a class="light" href="#live-\1" data-live="\1" data-cells="\2">\3</a>'


def statements() -> str:
    """Return the arithmetic, the pictures and what starts them."""
    model = re.sub(r"^export ", "", MODEL.read_text("utf-8"), flags=re.MULTILINE)
    pictures = "\n".join(file.read_text("utf-8") for file in SCRIPTS)
    return f"{model}\n{pictures}"


def script() -> str:
    """Return the one script."""
    return f'(() => {{\n"use strict";\n{statements()}}})();\n'


def place_figures(text: str) -> str:
    """Return a page's text with figures and links in place of the comments."""
    text = LIGHT.sub(LINK, text)
    return COMMENT.sub(lambda found: f"```{{raw}} html\n{FIGURE.format(found[1])}\n```", text)


def replace(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the figures into a page that is read."""
    source[0] = place_figures(source[0])


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Load the script on pages that have a figure."""
    if FIGURE.partition("{")[0] in context.get("body", ""):
        app.add_js_file("live.js")


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the script."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "_static" / "live.js").write_text(script(), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is read."""
    app.connect("source-read", replace)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    app.add_css_file("live.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
