"""The site's icon, a heat map of nine numbers: ``python -m docs.site.favicon``.

The command writes docs/_static/favicon.svg, to which conf.py points, and favicon.png for browsers
that take no SVG.
"""

import struct
import zlib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

STATIC = Path(__file__).resolve().parents[1] / "_static"
SVG, PNG = STATIC / "favicon.svg", STATIC / "favicon.png"

ORANGE, PALE_ORANGE = "#d55e00", "#f2b37f"
BLUE, PALE_BLUE = "#0072b2", "#8cc4e6"
CELLS = [
    [ORANGE, PALE_BLUE, PALE_ORANGE],
    [PALE_BLUE, BLUE, PALE_ORANGE],
    [PALE_ORANGE, PALE_ORANGE, ORANGE],
]
CELL, GAP = 10, 1
SIZE = 3 * CELL + 2 * GAP


def svg() -> str:
    """Return the icon for browsers of today."""
    cells = [
        f'<rect x="{column * (CELL + GAP)}" y="{row * (CELL + GAP)}" '
        f'width="{CELL}" height="{CELL}" rx="2" fill="{colour}"/>'
        for row, colours in enumerate(CELLS)
        for column, colour in enumerate(colours)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}">'
    return "\n".join([head, *cells, "</svg>"]) + "\n"


def pixels() -> bytes:
    """Return the rows of the icon as PNG has them: a zero, then red, green, blue, opacity."""
    return b"".join(
        b"\0" + b"".join(_pixel(row, column) for column in range(SIZE)) for row in range(SIZE)
    )


def _pixel(row: int, column: int) -> bytes:
    (i, down), (j, across) = divmod(row, CELL + GAP), divmod(column, CELL + GAP)
    if CELL in (down, across):
        return bytes(4)  # between the cells nothing is seen
    return bytes.fromhex(f"{CELLS[i][j][1:]}ff")


def png() -> bytes:
    """Return the icon as a PNG of 32 by 32 pixels."""
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)  # 8 bits, colours with opacity
    chunks = [_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(pixels(), 9))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def _add_alternative(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    address = context["pathto"](f"_static/{PNG.name}", resource=True)
    link = f'<link rel="alternate icon" type="image/png" sizes="{SIZE}x{SIZE}" href="{address}">'
    context["metatags"] = context.get("metatags", "") + link


def setup(app: Sphinx) -> dict[str, Any]:
    """Name the PNG in every page; conf.py names the SVG."""
    app.connect("html-page-context", _add_alternative)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    SVG.write_text(svg(), "utf-8")
    PNG.write_bytes(png())
    print(SVG.name, PNG.name)
