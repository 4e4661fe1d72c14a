"""Formulas of the reference as formulas; docstrings have them as plain text, for readers of code.

x_i becomes x with an index, x^2 and e^{j z} x and e with a power, sum_{j=0}^t a sigma with limits.
Where something is equal to something, or has a power, sqrt becomes a root, and the names of Greek
letters the letters.
"""

import re
import unicodedata
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

GREEK = ["alpha", "beta", "gamma", "delta", "theta", "mu", "sigma", "omega", "phi", "pi"]
SIGNS = {name: unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}") for name in GREEK}
SIGNS |= {"eps": unicodedata.lookup("GREEK SMALL LETTER EPSILON"), "sqrt": "\N{SQUARE ROOT}"}
SIGNS |= {"Delta": "\N{GREEK CAPITAL LETTER DELTA}"}
SUM = {"sum": "\N{N-ARY SUMMATION}"}
NAME = r"(?:d?[A-Za-z]|loss|table|" + "|".join(SIGNS | SUM) + ")"
WORDS = "ff|in|of|to|up"
"""Not two indices: d_ff is a name."""
PART = re.compile(
    rf"(?<![\w`.])(?P<base>{NAME})_"
    rf"(?:\{{(?P<group>[^{{}}]+)\}}|(?P<index>[A-Za-z0-9]|(?!{WORDS})[a-z]{{2}}))(?!\w|\.\w)"
    r"|(?<=[\w)\]}])\^(?P<power>\([^()]*\)|\{[^{}]*\}|-?\w+(?:\.\d+)?)"
    rf"|(?<![\w`.])(?P<sign>{'|'.join(SIGNS)})(?P<number>\d?)(?!\w|\.\w)"
    r"|(?<![\w`.])(?P<estimate>[a-z])_hat(?!\w)"
)
CODE = (nodes.literal, addnodes.literal_strong, addnodes.literal_emphasis)
EQUATION = re.compile(r"\w[\w\s^*/+()\[\]{}'-]* = |\w\^[({\w-]")


def typeset(text: str, signs: bool = True) -> list[nodes.Node]:
    """Return text with indices and powers and, with `signs`, roots and Greek letters."""
    found: list[nodes.Node] = []
    end = 0
    for part in PART.finditer(text):
        found.append(nodes.Text(text[end : part.start()]))
        end = part.end()
        if base := part["base"]:
            shown = (SIGNS | SUM).get(base, base)
            index = part["group"] or part["index"]
            found += [nodes.Text(shown), nodes.subscript("", "", *_small(index))]
        elif power := part["power"]:
            found.append(nodes.superscript("", "", *_small(power.strip("(){}"))))
        elif letter := part["estimate"]:
            found.append(nodes.Text(f"{letter}\N{COMBINING CIRCUMFLEX ACCENT}"))
        else:
            found.append(nodes.Text(SIGNS[part["sign"]] if signs else part["sign"]))
            if number := part["number"]:
                found.append(nodes.subscript("", number) if signs else nodes.Text(number))
    return [*found, nodes.Text(text[end:])]


def _small(text: str) -> list[nodes.Node]:
    """Return what an index or a power holds, with its own indices and signs."""
    return typeset(
        text.replace(">=", "\N{GREATER-THAN OR EQUAL TO}").replace("-", "\N{MINUS SIGN}")
    )


def draw(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Set the formulas of a page of the reference."""
    if not page.startswith("reference/"):
        return
    for place in [*doctree.findall(nodes.paragraph), *doctree.findall(nodes.literal_block)]:
        states, block = EQUATION.search(place.astext()), isinstance(place, nodes.literal_block)
        if block and (place.get("language", "default") != "default" or not states):
            continue
        for text in list(place.findall(nodes.Text)):
            if not isinstance(text.parent, CODE):
                text.parent.replace(text, typeset(text.astext(), bool(states)))
        if block:
            place.rawsource = ""  # then its parts are shown, not highlighted as code
            place["classes"].append("formula")


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is written."""
    app.connect("doctree-resolved", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
