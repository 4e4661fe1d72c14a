"""The tables of a trace."""

import re
from itertools import repeat
from typing import Any

import numpy as np

from npformer.core import Array, to_numpy
from npformer.core.support.tables import Table
from npformer.training.inspection.calls import BackwardCall, Call, shapes

SIDES = "<<<>>>"
"""Where cells of the columns stand."""

NARROWEST = 9
"""Least width of a column of numbers: rounding errors, such as -1.23e-17, then do not widen it."""


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
