"""Formulas of the reference as formulas; docstrings have them as plain text, for readers of code.

x_i becomes x with an index, x^2 x with a power, sum_j a sigma with an index. Where something is
equal to something, sqrt becomes a root, and the names of Greek letters the letters.
"""

import re
import unicodedata
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

GREEK = ["alpha", "beta", "gamma", "delta", "theta", "mu", "sigma", "omega", "phi", "pi"]
SIGNS = {name: unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}") for name in GREEK}
SIGNS |= {"eps": unicodedata.lookup("GREEK SMALL LETTER EPSILON"), "sqrt": "\N{SQUARE ROOT}"}
SUM = {"sum": "\N{N-ARY SUMMATION}"}
NAME = r"(?:d?[A-Za-z]|" + "|".join(SIGNS | SUM) + ")"
PART = re.compile(
    rf"(?<![\w`.])(?P<base>{NAME})_(?P<index>[A-Za-z0-9]|ij)(?!\w|\.\w|\()"
    rf"|(?<=[\w)\]])\^(?P<power>\([^()]*\)|-?\w+)"
    rf"|(?<![\w`.])(?P<sign>{'|'.join(SIGNS)})(?!\w|\.\w)"
)
EQUATION = re.compile(r"\w[\w\s^*/+()\[\]'-]* = ")
PLACES = ("reference/functional", "reference/layers", "reference/mixers", "reference/losses")


def typeset(text: str, signs: bool = True) -> list[nodes.Node]:
    """Return text with indices and powers and, with `signs`, roots and Greek letters."""
    found: list[nodes.Node] = []
    end = 0
    for part in PART.finditer(text):
        found.append(nodes.Text(text[end : part.start()]))
        end = part.end()
        if base := part["base"]:
            shown = (SIGNS | SUM).get(base, base)
            found += [nodes.Text(shown), nodes.subscript("", part["index"])]
        elif part["power"]:
            found.append(nodes.superscript("", part["power"].strip("()")))
        else:
            found.append(nodes.Text(SIGNS[part["sign"]] if signs else part["sign"]))
    return [*found, nodes.Text(text[end:])]


def draw(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Set the formulas of a page of the reference."""
    if page not in PLACES:
        return
    for place in [*doctree.findall(nodes.paragraph), *doctree.findall(nodes.literal_block)]:
        states, block = EQUATION.search(place.astext()), isinstance(place, nodes.literal_block)
        if block and (place.get("language", "default") != "default" or not states):
            continue
        for text in list(place.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal):
                text.parent.replace(text, typeset(text.astext(), bool(states)))
        if block:
            place.rawsource = ""  # then its parts are shown, not highlighted as code
            place["classes"].append("formula")


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is written."""
    app.connect("doctree-resolved", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
