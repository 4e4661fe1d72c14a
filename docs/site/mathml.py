"""Formulas as MathML, which browsers draw themselves: the site needs no script and no network."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

FONT = files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
"""A font with the glyphs and measures of formulas, under the SIL Open Font License; a telephone has
none of its own."""


PRIME = re.compile(r"<msup>((?:(?!</?msup>).)*?)<mi>(&#x0203[23];)</mi></msup>")
BESIDE = r'<mo lspace="0" rspace="0">\2</mo>'
"""A prime is small and raised by itself: as an exponent it would be so twice."""


def mathml(latex: str, display: str, node: nodes.Node) -> str:
    """Return a formula as MathML; warn where the converter does not know a command."""
    # the converter knows only the numbered name of the same environment
    known = latex.replace("{aligned}", "{align*}")
    made = PRIME.sub(r"<mrow>\1" + BESIDE + "</mrow>", convert(known, display=display))
    if "\\" in made or "<mi>&</mi>" in made:
        logging.getLogger(__name__).warning("no MathML for %s", latex, location=node)
    return made


def _inline(visitor: Any, node: nodes.math) -> None:
    visitor.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def _block(visitor: Any, node: nodes.math_block) -> None:
    visitor.body.append(f'<div class="math">{mathml(node.astext(), "block", node)}</div>')
    raise nodes.SkipNode


def _add_font(app: Sphinx) -> None:
    """Put the font among the site's files."""
    if app.builder.format == "html":
        place = Path(app.outdir) / "_static"
        place.mkdir(parents=True, exist_ok=True)
        (place / "math.ttf").write_bytes(FONT.read_bytes())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("build-finished", lambda app, error: error or _add_font(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
