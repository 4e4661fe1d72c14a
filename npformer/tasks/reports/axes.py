"""A matrix as an SVG picture, with the names of tokens along both axes."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from npformer.tasks.reports.elements import e

CELL = 14
"""Pixels per token along an axis."""

BASE = 11
"""From a cell's edge to the line on which its token is written."""

MOST_TOKENS = 64
"""The most tokens along an axis; of longer sequences, only the first ones are shown."""


def with_axes(address: str, rows: Sequence[str], columns: Sequence[str], label: str) -> Element:
    """Return a picture with a name for each row and column; `label` describes it."""
    left, top = (round(0.6 * CELL * _longest(each)) + 6 for each in (rows, columns))
    wide, tall = CELL * len(columns), CELL * len(rows)
    image = e(
        "image",
        href=address,
        x=str(left),
        y=str(top),
        width=str(wide),
        height=str(tall),
        preserveAspectRatio="none",
        style="image-rendering: pixelated",
    )
    names = [
        e("text", _visible(token), x=str(left - 4), y=str(top + CELL * i + BASE), class_="row")
        for i, token in enumerate(rows)
    ]
    for j, token in enumerate(columns):
        x = left + CELL * j + BASE
        turned = f"rotate(-90 {x} {top - 4})"
        names.append(e("text", _visible(token), x=str(x), y=str(top - 4), transform=turned))
    svg = e(
        "svg",
        image,
        names,
        viewBox=f"0 0 {left + wide} {top + tall}",
        width=str(left + wide),
        role="img",
        class_="axes",
    )
    svg.set("aria-label", label)
    return svg


def _visible(token: str) -> str:
    """Return a token as it is shown: with visible blanks and line breaks."""
    named = token.replace("\n", "\u21b5").replace("\t", "\u21e5").replace(" ", "\u00b7")
    return named if len(named) <= 12 else f"{named[:11]}\u2026"


def _longest(tokens: Sequence[str]) -> int:
    return max((len(_visible(token)) for token in tokens), default=0)
