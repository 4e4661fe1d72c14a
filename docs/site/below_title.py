"""What the site adds to a chapter below its title."""

from docutils import nodes
from sphinx.application import Sphinx


def chapter_of(app: Sphinx) -> str:
    """Return the name of the chapter that is being read; "" for another page."""
    folder, _, chapter = app.env.docname.rpartition("/")
    return chapter if folder == "chapters" else ""


def below_title(doctree: nodes.document, html: str) -> None:
    """Put HTML below the title of a page."""
    title = next(doctree.findall(nodes.title))
    title.parent.insert(1, nodes.raw("", html, format="html"))
