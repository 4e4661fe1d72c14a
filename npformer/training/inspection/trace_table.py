"""How a trace is printed: tables, as text and for notebooks."""

import re
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from npformer.core import Array, to_numpy
from npformer.training.inspection.calls import BackwardCall, Call, shapes

NARROWEST = 9
"""Least width of a column of numbers: rounding errors, such as -1.23e-17, then do not widen it."""

Table = tuple[str, list[tuple[str, ...]]]
"""A title, and rows, of which the first is the head. The first two columns are words."""


def trace_tables(found: Any) -> list[Table]:
    """Return the tables of a `Trace`: forward and backward pass, gradients of the parameters."""
    head = ("name", "layer", "shape", "mean", "spread")
    rows: list[tuple[str, ...]] = [(*head, "bytes cached")]
    rows += [(*_row(call, call.output), f"{call.bytes_cached:,}") for call in found]
    tables = [("forward: the output y of each layer", rows)]
    if found.backward:
        title = "backward: dx, the gradient of the loss with respect to each layer's input"
        tables.append((title, [head, *(_row(call, call.dx) for call in found.backward)]))
    if found.gradients:
        of = [
            (name, "", str(tuple(found.gradients[name].shape)), number(norm))
            for name, norm in found.gradient_norms.items()
        ]
        tables.append(("gradients of the parameters", [("name", "", "shape", "norm"), *of]))
    return tables


def _row(call: Call | BackwardCall, value: Any) -> tuple[str, ...]:
    context, pair = call.context, isinstance(call, BackwardCall) and isinstance(value, tuple)
    masks = (context.mask, context.memory_mask) if pair else repeat(context.mask)
    arrays = value if isinstance(value, tuple | list) else (value,)
    moments = [
        mean_and_spread(array, mask)
        for array, mask in zip(arrays, masks, strict=False)
        if hasattr(array, "shape")
    ]
    means = ", ".join(number(mean) for mean, _ in moments) or "-"
    spreads = ", ".join(number(spread) for _, spread in moments) or "-"
    return label(call.name), type(call.layer).__name__, shapes(value), means, spreads


def mean_and_spread(x: Array, mask: Array | None = None) -> tuple[complex, float]:
    """Return mean and standard deviation of all entries, in float64, without those of padding.

    An array has an entry or a row for each token if its first two axes are those of the mask.
    """
    x = to_numpy(x)
    if mask is not None and x.ndim in (2, 3) and x.shape[:2] == mask.shape:
        x = x[to_numpy(mask)]
    if x.size == 0:
        return np.nan, np.nan
    with np.errstate(all="ignore"):
        wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
        mean, spread = wide.mean().item(), float(wide.std())
    return (0.0 if abs(mean) < 1e-6 * spread else mean), spread  # nothing but rounding


def number(value: complex) -> str:
    """Return a number with three digits; 0 is "0"."""
    return f"{value:#.3g}".rstrip(".") if value else "0"


def label(name: str) -> str:
    """Return the last part of a dotted name, indented; ``blocks.0`` is one part."""
    words = re.split(r"\.(?!\d)", name)
    return "  " * len(words) + words[-1] if name else "model"


def as_text(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Return tables and notes as text."""
    lines: list[str] = []
    for title, rows in tables:
        written = align_columns(rows, "<<<>>>", NARROWEST)
        rule = "-" * max(map(len, written))
        lines += [title, rule, written[0], rule, *written[1:], ""]
    return "\n".join([*lines, *notes])


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
