"""The diagram of the machine on the site: with links on its boxes, and small in each chapter."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from docs.site import machine
from docs.site.below_title import below_title, chapter_of

CHAPTERS = {box.chapter for box in machine.BOXES}
PAGE = "what_is_a_transformer"


def show_it(app: Sphinx, doctree: nodes.document) -> None:
    """Add links to the picture, and put the small one below a chapter's title."""
    here = app.env.docname

    def uri(page: str) -> str:
        return relative_uri(app.builder.get_target_uri(here), app.builder.get_target_uri(page))

    def link(chapter: str) -> str | None:
        page = f"chapters/{chapter}"
        return uri(page) if (Path(app.srcdir) / f"{page}.md").exists() else None

    for picture in list(doctree.findall(nodes.image)):
        if picture["uri"].endswith(f"pictures/{machine.FILE.name}"):
            picture.replace_self(nodes.raw("", machine.whole(link, style=""), format="html"))
    if (chapter := chapter_of(app)) in CHAPTERS:
        small = f'<a class="machine-here" href="{uri(PAGE)}">{machine.small(chapter)}</a>'
        below_title(doctree, small)


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is read."""
    app.connect("doctree-read", show_it)
    app.add_css_file("machine.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
