"""Pictures of the arrays of one training step, drawn when the site is built.

On the page training_step, a comment, ``<!-- arrays: S A -->``, becomes a
heat map of each array of `docs.site.one_step` that it names. An optional script shows one step at a
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from docs.site.one_step import arrays

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "training_step"
COMMENT = re.compile(r"^<!-- arrays: (?P<names>.+?) -->$", re.MULTILINE)

LEVELS = 16
"""The number of shades of a colour: the largest magnitude of an array has the last."""
NOTHING = 1e-12
"""An array whose entries are all smaller holds only rounding errors, and gets no colour."""
CELL = 15
"""The size of an entry in pixels."""


@cache
def known() -> dict[str, Any]:
    """Return the arrays by name."""
    return arrays()


def drawn(text: str) -> str:
    """Return a page's text with pictures in place of the comments."""
    return COMMENT.sub(lambda found: _row(found["names"].split()), text)


def _row(names: list[str]) -> str:
    if missing := [name for name in names if name not in known()]:
        raise ValueError(f"no array is called {', '.join(missing)}; expected {', '.join(known())}")
    # without an empty line, because that would end the block of HTML in Markdown
    return "\n".join(['<div class="arrays">', *(figure(n, known()[n]) for n in names), "</div>"])


def figure(name: str, array: Any) -> str:
    """Return a heat map with a caption: the name, the shape, the mean and the spread."""
    if array.ndim == 0:
        caption, picture = f"<b>{name}</b>", f'<span class="number">{number(array)}</span>'
    else:
        caption, picture = _caption(name, array), heat_map(name, array)
    return f'<figure data-array="{name}">{picture}<figcaption>{caption}</figcaption></figure>'


def _caption(name: str, array: Any) -> str:
    shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
    largest = float(np.abs(array).max())
    if largest < NOTHING:
        return f"<b>{name}</b> ({shape})<br>0 up to rounding"
    numbers = f"mean {number(array.mean())}, spread {number(array.std())}"
    return f"<b>{name}</b> ({shape})<br>{numbers}<br>full colour {number(largest)}"


def number(value: Any) -> str:
    """Return a number with three digits, and 0 for a rounding error."""
    if np.asarray(value).dtype.kind == "i":
        return str(value)
    return "0" if abs(value) < NOTHING else f"{float(value):#.3g}".rstrip(".")


def heat_map(name: str, array: Any) -> str:
    """Return the SVG of an array: heads side by side, a vector as one row."""
    matrices = array if array.ndim == 3 else np.atleast_2d(array)[None]
    _, n_rows, n_columns = matrices.shape
    wide = 2.3 if array.ndim == 1 and n_columns <= 10 else 1.0  # there is a number below each entry
    across = wide * n_columns
    width = (across + 1) * len(matrices) - 1
    height = n_rows + (1.1 if wide > 1 else 0)
    parts = []
    for k, matrix in enumerate(matrices):
        left = k * (across + 1)
        parts.append(f'<rect class="frame" x="{left:g}" width="{across:g}" height="{n_rows}"/>')
        parts += shades(matrix / max(np.abs(array).max(), NOTHING), left, wide)
        if wide > 1:
            parts += _numbers(matrix[0], wide)
    label = escape(f"{name}, {' x '.join(map(str, array.shape))} entries")
    size = f'viewBox="0 0 {width:g} {height:g}" width="{CELL * width:g}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def shades(shares: Any, left: float = 0.0, wide: float = 1.0) -> Iterator[str]:
    """Return a path for each shade: all entries that have it, as rectangles."""
    shades = np.rint(LEVELS * shares).astype(int)
    for shade in sorted({*shades.ravel().tolist()} - {0}):
        cells = "".join(
            f"M{left + wide * column:g} {row}h{wide:g}v1h-{wide:g}z"
            for row, column in zip(*np.nonzero(shades == shade), strict=True)
        )
        kind, opacity = "plus" if shade > 0 else "minus", abs(shade) / LEVELS
        yield f'<path class="{kind}" fill-opacity="{opacity:.4g}" d="{cells}"/>'


def _numbers(row: Any, wide: float) -> Iterator[str]:
    for column, value in enumerate(row):
        text = f"{value:.2f}" if abs(value) >= 0.005 else "0"
        yield f'<text x="{wide * (column + 0.5):g}" y="1.9">{text}</text>'


def _draw(app: Sphinx, page: str, source: list[str]) -> None:
    if page == PAGE and app.builder.format == "html":
        source[0] = drawn(source[0])


def _dress(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    if page == PAGE:
        app.add_css_file("training_step.css")
        app.add_js_file("training_step.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Draw the arrays when the page is read, and add its style and its script."""
    app.connect("source-read", _draw)
    app.connect("html-page-context", _dress)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
