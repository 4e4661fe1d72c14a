"""Search that shows excerpts even when the site is opened from a file.

For the excerpt below a link, Sphinx fetches the page over the network, which browsers do not allow
on a page opened from a file. So a script of the search page holds the text of all pages.
The order of results is in scorer.js.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

SCRIPT = r"""const TEXTS = %s;
const ofNetwork = window.fetch;
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
window.fetch = (address) => {
  const parts = TEXTS[String(address).replace(/^(?:\.\/)?(.*)\.html$/, "$1")];
  if (parts === undefined) return ofNetwork(address);
  const made = parts.map(([id, text]) => `<section id="${id}">${escaped(text)}</section>`);
  return Promise.resolve(new Response(`<main role="main">${made.join(" ")}</main>`));
};
"""


def texts(doctree: nodes.document) -> list[tuple[str, str]]:
    """Return (id of a section, its text without code) for all sections of a page."""
    parts: dict[str, list[str]] = {}
    for paragraph in doctree.findall(nodes.paragraph):
        place: nodes.Element | None = paragraph
        while place is not None and not isinstance(place, nodes.section):
            place = place.parent
        if place is None:
            continue
        words = [
            text.astext()
            for text in paragraph.findall(nodes.Text)
            # only those formulas that can be read as text
            if not (isinstance(text.parent, nodes.math) and "\\" in text)
        ]
        parts.setdefault(place["ids"][0], []).append(" ".join("".join(words).split()))
    return [(name, " ".join(filter(None, words))) for name, words in parts.items()]


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the results page read the texts."""
    if page == "search":
        app.add_js_file("excerpts.js")


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the texts of all pages."""
    if error is None and app.builder.format == "html":
        found = {page: texts(app.env.get_doctree(page)) for page in sorted(app.env.found_docs)}
        place = Path(app.outdir) / "_static" / "excerpts.js"
        place.write_text(SCRIPT % json.dumps(found, ensure_ascii=False), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the script, and include it in the results page."""
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
