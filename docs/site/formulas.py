"""Formulas as SVG, drawn when the site is built: the same in every browser, without a script.

A formula is a row of pieces, each a picture as high as its text. A browser breaks the row between
pieces, before a relation such as =, as it breaks text between words; a piece that is still too
wide is made smaller. So a formula is never cut off on a narrow screen.
"""

import hashlib
import re
import xml.etree.ElementTree as ET
from functools import cache
from html import escape
from typing import Any, NamedTuple

import ziamath
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from ziamath.zmath import denamespace

UNITS = 200
"""Units of a picture's coordinates in an em: whole numbers are exact enough, and short."""

LINE = 20.0
"""Ems that a phone's screen holds: a wider formula is broken wherever that is allowed."""

WORDY = 7.0
"""Ems: a formula within text that is wider may also be broken."""

RELATIONS = set("=≈≤≥<>→⇒≡∈≠")
BINARY = set("+−·×")  # noqa: RUF001, the sign of subtraction
ACCENTS = {"\u0302": "\u02c6", "\u0303": "\u02dc", "^": "\u02c6", "~": "\u02dc"}
LARGE = set("∑∏∫")
OPERANDS = set(")]}⟩!|′‖…⋯∞")  # noqa: RUF001, a prime
"""Signs that end an operand, although they are written as operators."""
OPENING, CLOSING = set("([{⟨"), set(")]}⟩")


class Piece(NamedTuple):
    """An unbreakable part of a formula; lengths in ems."""

    gap: float  # to the piece before it, on the same line
    width: float
    below: float  # the baseline
    view: str
    drawn: str  # elements that name glyphs
    glyphs: tuple[tuple[str, str], ...]  # (id, outline) of these


@cache
def pieces(latex: str, display: bool) -> tuple[Piece, ...]:
    """Return the pieces of a formula; an unknown command is a ValueError."""
    # the converter knows only the numbered name of the same environment
    known = latex.replace("{aligned}", "{align*}")
    root = denamespace(ET.fromstring(convert(known, display="block" if display else "inline")))
    text = "".join(root.itertext())
    if "\\" in text or "&" in text:
        raise ValueError(f"{latex!r} has a command that cannot be drawn")
    row = root[0]
    _mend(row)
    in_one_line = [_drawn(root, list(row))]
    if in_one_line[0].width <= (LINE if display else WORDY):
        return tuple(in_one_line)
    in_lines = []
    for gap, elements in _broken(list(row), relations=True):
        piece = _drawn(root, elements, gap)
        if piece.width <= LINE:
            in_lines.append(piece)
        else:
            in_lines += [_drawn(root, p, g or gap) for g, p in _broken(elements, relations=False)]
    return tuple(in_lines)


def _broken(row: list[ET.Element], relations: bool) -> list[tuple[float, list[ET.Element]]]:
    """Break a row before relations and at wide spaces, or else before + and after commas.

    Return the parts, with the gap before each. Brackets are never broken.
    """
    breaks: list[tuple[float, list[ET.Element]]] = [(0.0, [])]
    depth = 0
    for element in row:
        core = _core(element)
        sign = (core.text or "") if core.tag == "mo" else ""
        depth += (sign in OPENING) - (sign in CLOSING)
        current = breaks[-1][1]
        space = float(element.get("width", "0em")[:-2]) if element.tag == "mspace" else 0.0
        if depth == 0 and relations and space >= 1.0:
            breaks.append((space, []))
        elif (
            depth == 0
            and current
            and sign in (RELATIONS if relations else BINARY)
            and element.get("form") != "prefix"
        ):
            breaks.append((0.33 if relations else 0.25, [element]))
        else:
            current.append(element)
            if depth == 0 and not relations and sign == ",":
                breaks.append((0.3, []))
    return [(gap, elements) for gap, elements in breaks if elements]


def _mend(element: ET.Element) -> None:
    """Fix what the converter leaves to browsers: signs, accents, functions, primes."""
    before: ET.Element | None = None
    for k, child in enumerate(list(element)):
        _mend(child)
        sign = child.text or ""
        if sign == "∂":
            child.attrib.update(form="prefix", lspace="0em", rspace="0em")
        elif sign in LARGE:
            child.set("stretchy", "false")  # its own height, not that of brackets around it
        elif sign in ("+", "−", "±") and child.tag in ("mo", "mi"):  # noqa: RUF001
            child.tag = "mo"
            if element.tag in ("mrow", "math", "mtd") and _begins(before):
                child.attrib.update(form="prefix", lspace="0em", rspace="0em")
        elif element.tag == "mover" and k == 1:
            child.set("stretchy", "false")  # a hat keeps its width
            child.text = ACCENTS.get(sign, sign)
        elif child.tag in ("mi", "mo") and len(sign) > 1 and sign.isalpha():
            child.tag = "mtext"  # sin, log, max: not spaced like an operator
        before = child
    if element.tag in ("mrow", "mtd"):
        _space_functions(element)


def _begins(before: ET.Element | None) -> bool:
    """Return whether a sign after this element has only one operand: -x, not y - x."""
    if before is None or before.tag == "mspace":
        return True
    return before.tag == "mo" and (before.text or "") not in OPERANDS


def _space_functions(row: ET.Element) -> None:
    """Put a thin space into log x but not into log(x), and one after a sum within text."""
    children = list(row)
    for k in range(len(children) - 1, -1, -1):
        core, after = _core(children[k]), children[k + 1 : k + 2]
        if core.text in LARGE:
            row.insert(k + 1, ET.Element("mspace", width="0.1em"))
        if core.tag != "mtext" or not (core.text or "").isalpha():
            continue
        if after and after[0].tag not in ("mo", "mrow", "mspace"):
            row.insert(k + 1, ET.Element("mspace", width="0.17em"))
        if k and (children[k - 1].tag not in ("mo", "mspace") or children[k - 1].text in CLOSING):
            row.insert(k, ET.Element("mspace", width="0.17em"))


def _core(element: ET.Element) -> ET.Element:
    """Return the element that indices and limits are attached to."""
    while element.tag in ("msub", "msup", "msubsup", "munder", "munderover") and len(element):
        element = element[0]
    return element


def _drawn(root: ET.Element, row: list[ET.Element], gap: float = 0.0) -> Piece:
    """Draw a part of a formula's row."""
    math = ET.Element("math", root.attrib)
    ET.SubElement(math, "mrow").extend(row)
    if gap and row[0].tag == "mo":  # the space before a sign is the gap
        row[0].attrib.update(form="infix", lspace="0em", rspace=f"{gap}em")
    ziamath.config.svg2, ziamath.config.precision = False, 6
    svg = ziamath.Math(ET.fromstring(ET.tostring(math)), size=UNITS, margin=0).svgxml()
    glyphs, drawn = {}, []
    for element in svg.iter():
        if element.tag == "path" and element.attrib["d"].strip():
            name, outline, x, y = _outline(element.attrib["d"])
            glyphs[name] = outline
            drawn.append(f'<use href="#{name}" x="{x}" y="{y}"/>')
        elif element.tag == "rect":
            sides = [f'{k}="{round(float(element.attrib[k]))}"' for k in ("x", "y", "width")]
            thick = max(round(float(element.attrib["height"])), 1)
            drawn.append(f'<rect {" ".join(sides)} height="{thick}"/>')
    view = [round(float(number)) for number in svg.attrib["viewBox"].split()]
    below = (view[1] + view[3]) / UNITS
    box = " ".join(map(str, view))
    return Piece(gap, view[2] / UNITS, below, box, "".join(drawn), tuple(glyphs.items()))


PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


def _outline(drawn: str) -> tuple[str, str, int, int]:
    """Return a glyph's name, its outline from its first point, and that point."""
    first = PAIR.search(drawn)
    assert first
    x, y = float(first[1]), float(first[2])
    outline = PAIR.sub(lambda p: f"{round(float(p[1]) - x)} {round(float(p[2]) - y)}", drawn)
    outline = re.sub(r" ?([A-Z]) ?", r"\1", outline).strip()
    name = "g" + hashlib.sha1(outline.encode(), usedforsecurity=False).hexdigest()[:7]
    return name, outline, round(x), round(y)


def html(latex: str, display: bool, glyph_ids: set[str], after: str = "") -> str:
    """Return a formula as HTML, with the sign `after` it, which stays on the same line.

    `glyph_ids` holds the ids of glyphs whose outlines the page already has.
    """
    lines: list[list[str]] = [[]]
    for piece in pieces(latex, display):
        if piece.gap >= 1.0 and lines[-1]:
            lines.append([])
        new = [(name, d) for name, d in piece.glyphs if name not in glyph_ids]
        glyph_ids.update(name for name, _ in new)
        outlines = "".join(f'<path id="{name}" d="{d}"/>' for name, d in new)
        style = f"width:{piece.width:.2f}em;vertical-align:{-piece.below:.2f}em"
        if 0.0 < piece.gap < 1.0:
            style += f";margin-left:{piece.gap:.2g}em"
        lines[-1].append(
            f'<svg viewBox="{piece.view}" style="{style}" aria-hidden="true">'
            f"{f'<defs>{outlines}</defs>' if new else ''}{piece.drawn}</svg>"
        )
    if after:
        lines[-1][-1] = f'<span class="kept">{lines[-1][-1]}{after}</span>'
    tag = "div" if display else "span"
    label = escape(" ".join(latex.split()) + after)
    inner = "".join(f"<span>{'<wbr>'.join(line)}</span>" for line in lines)
    return f'<{tag} class="math" role="img" aria-label="{label}">{inner}</{tag}>'


def _write(visitor: Any, node: nodes.math | nodes.math_block) -> None:
    if not hasattr(visitor, "glyphs_of_formulas"):
        visitor.glyphs_of_formulas = set()
    try:
        display = isinstance(node, nodes.math_block)
        glyph_ids = visitor.glyphs_of_formulas
        visitor.body.append(html(node.astext(), display, glyph_ids, node.get("after", "")))
    except ValueError as error:
        logging.getLogger(__name__).warning("%s", error, location=node)
    raise nodes.SkipNode


SIGN = re.compile(r"[,.;:?!)\]]+")


def keep_signs(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Attach a comma that follows a formula to it, or a line could begin with the comma."""
    for formula in doctree.findall(nodes.math):
        place = formula.parent.index(formula) + 1
        text = formula.parent[place] if place < len(formula.parent) else None
        if isinstance(text, nodes.Text) and (sign := SIGN.match(text)):
            formula["after"] = sign[0]
            formula.parent[place] = nodes.Text(text[sign.end() :])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "svg"."""
    app.add_html_math_renderer("svg", (_write, None), (_write, None))
    app.connect("doctree-resolved", keep_signs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
