"""Tables as text and as HTML, for terminals and for notebooks."""

from collections.abc import Sequence

Table = tuple[str, list[tuple[str, ...]]]
"""A title, and rows, of which the first is the head."""


def align_columns(rows: Sequence[Sequence[str]], sides: str, narrowest: int = 0) -> list[str]:
    """Return rows as lines, with columns as wide as their longest cells; empty ones are left out.

    `sides` says where the cells of each column stand: "<" or ">". Columns of the latter are at
    least `narrowest` characters wide.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    wide = [max(w, narrowest) if side == ">" else w for side, w in zip(sides, widths, strict=False)]
    return [
        "  ".join(
            f"{cell:{side}{w}}" for cell, side, w in zip(row, sides, wide, strict=False) if w
        ).rstrip()
        for row in rows
    ]


def as_text(tables: Sequence[Table], notes: Sequence[str], sides: str, narrowest: int = 0) -> str:
    """Return tables and notes as text; `sides` and `narrowest` as in `align_columns`."""
    lines: list[str] = []
    for title, rows in tables:
        written = align_columns(rows, sides, narrowest)
        rule = "-" * max(map(len, written))
        lines += [title, rule, written[0], rule, *written[1:], ""]
    return "\n".join([*lines, *notes])


def as_html(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Return tables and notes as HTML, for notebooks."""
    from html import escape  # here, because few need it

    blocks = []
    for title, (head, *rows) in tables:
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>"
            + "".join(f'<td style="white-space: pre">{escape(cell)}</td>' for cell in row)
            + "</tr>"
            for row in rows
        )
        blocks.append(
            f"<table><caption>{escape(title)}</caption><thead><tr>{cells}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )
    return "".join([*blocks, *(f"<p>{escape(note)}</p>" for note in notes)])
