"""A matrix as an SVG picture, with the names of tokens along both axes."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, fromstring

from npformer.tasks.reports.elements import e
from npformer.training.inspection.trace import Call

CELL = 14
"""Pixels per token along an axis."""

BASE = 11
"""From a cell's edge to the line on which its token is written."""

MOST_TOKENS = 64
"""The most tokens along an axis; of longer sequences, only the first ones are shown."""


def add_axes(address: str, rows: Sequence[str], columns: Sequence[str], label: str) -> Element:
    """Return a picture with a name for each row and column; `label` describes it."""
    longest = (
        max((len(_visible(token)) for token in tokens), default=0) for tokens in (rows, columns)
    )
    left, top = (round(0.6 * CELL * n) + 6 for n in longest)
    wide, tall = CELL * len(columns), CELL * len(rows)
    place = f'x="{left}" y="{top}" width="{wide}" height="{tall}"'
    svg = fromstring(
        f"""<svg viewBox="0 0 {left + wide} {top + tall}" width="{left + wide}" role="img"
        class="axes"><image href="{address}" {place} preserveAspectRatio="none"
        style="image-rendering: pixelated"/></svg>"""
    )
    svg.set("aria-label", label)
    for i, token in enumerate(rows):
        y = str(top + CELL * i + BASE)
        svg.append(e("text", _visible(token), x=str(left - 4), y=y, class_="row"))
    for j, token in enumerate(columns):
        x, y = str(left + CELL * j + BASE), str(top - 4)
        svg.append(e("text", _visible(token), x=x, y=y, transform=f"rotate(-90 {x} {y})"))
    return svg


def heads(call: Call, figures: Sequence[Element]) -> list[Element]:
    """Return the pictures of a mixer's heads, below its name."""
    name = e("h5", f"{call.name} ", e("span", type(call.layer).__name__))
    return [name, e("div", figures, class_="heads")]


def _visible(token: str) -> str:
    """Return a token as it is shown: with visible blanks and line breaks."""
    named = token.replace("\n", "\u21b5").replace("\t", "\u21e5").replace(" ", "\u00b7")
    return named if len(named) <= 12 else f"{named[:11]}\u2026"
