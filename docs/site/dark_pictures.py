"""Pictures for dark mode: a second version of each SVG on a page, with light ink on a dark page.

Black ink becomes light, and a white background takes the page's colour; other colours stay,
because they have a meaning. The theme shows one of the two.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from docs.site.colours import LETTERS, LETTERS_IN_THE_DARK

INK = {"#000000": "#cfd0d0", "#444444": "#a4a8ad", "#0072b2": "#56b4e9"} | {
    LETTERS[letter]: LETTERS_IN_THE_DARK[letter] for letter in LETTERS
}
"""What black, grey and dark colours become as lines and letters; black is furo's colour of text."""

GROUND = {"#ffffff": "#131416", "#f2f2f2": "#303335"}
"""What white and light grey become as the background of a picture, axes, boxes and markers."""

ON_GROUND = re.compile(
    r'(<g id="patch_\d+">\s*<path [^>]*style="fill: |<use [^>]*style="fill: )(#ffffff|#f2f2f2)'
)
"""Backgrounds only, not the white cells of a heat map."""

LINE = re.compile(r"((?:stroke|<text[^>]*?fill): )(#000000|#444444)")
DARK_LETTERS = re.compile(rf"(<text[^>]*?fill: )(#0072b2|{'|'.join(LETTERS.values())})")


def dark(svg: str) -> str:
    """Return the dark version of a picture that matplotlib drew."""
    svg = ON_GROUND.sub(lambda found: found[1] + GROUND[found[2]], svg)
    for each in (LINE, DARK_LETTERS):
        svg = each.sub(lambda found: found[1] + INK[found[2]], svg)
    # black text and markers have no fill of their own
    return svg.replace("*{stroke", f"svg{{fill: {INK['#000000']}}} *{{stroke", 1)


def show_both(app: Sphinx, doctree: nodes.document, here: str) -> None:
    """Insert a dark copy after each picture of a page."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        if not image["uri"].endswith(".svg"):
            continue
        name = Path(image["uri"]).name
        place = relative_uri(app.builder.get_target_uri(here), f"_images/dark_{name}")
        alt = nodes.Text(image.get("alt", "")).astext().replace('"', "&quot;")
        image["classes"].append("only-light")
        copy = nodes.raw("", f'<img class="only-dark" src="{place}" alt="{alt}">', format="html")
        image.parent.insert(image.parent.index(image) + 1, copy)


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the dark copies."""
    if error is not None or app.builder.format != "html":
        return
    for uri in app.env.images:
        if uri.endswith(".svg"):
            text = (Path(app.srcdir) / uri).read_text("utf-8")
            place = Path(app.outdir) / "_images" / f"dark_{Path(uri).name}"
            place.write_text(dark(text), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both functions to Sphinx."""
    app.connect("doctree-resolved", show_both)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
