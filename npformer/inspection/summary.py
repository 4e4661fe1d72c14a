"""A table of all layers."""

from __future__ import annotations

import math

from npformer.core import Array, Layer, Parameter
from npformer.engine import enabled
from npformer.engine.twins import as_written
from npformer.inspection.trace import trace


def summary(layer: Layer, x: Array, mask: Array | None = None) -> str:
    """Return a table of all layers: name, kind, shape of the output, parameters of its own.

    It says of each layer that the engine has no fast version of that it runs as it is written.

    Parameters
    ----------
    layer : Layer
    x : array
        An example of what goes in; only its shape and dtype matter.
    mask : bool array, shape (batch, length), optional
    """
    counted: set[int] = set()
    written = as_written(layer) if enabled() else set()
    by_name = dict(layer.layers())
    rows = [("layer", "kind", "output", "parameters", "")]
    for call in trace(layer, x, mask):
        own = [child for _, child in call.layer.children() if isinstance(child, Parameter)]
        shared = bool(own) and id(call.layer) in counted
        counted.add(id(call.layer))
        number = sum(math.prod(p.shape) for p in own if p.trainable)
        label = _label(call.name)
        count = "shared" if shared else f"{number:,}" if own else ""
        shape = ", ".join(str(tuple(y.shape)) for y in call.outputs())
        note = "runs as written" if id(by_name[call.name]) in written else ""
        rows.append((label, type(call.layer).__name__, shape, count, note))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d:>{widths[3]}}  {e}".rstrip()
        for a, b, c, d, e in rows
    ]
    lines.insert(1, "-" * (sum(widths) + 6))
    lines.append("-" * (sum(widths) + 6))
    lines.append(f"{layer.n_parameters():,} trained parameters, {layer.dtype}")
    return "\n".join(lines)


def _label(name: str) -> str:
    """Return the last part of a dotted name, indented; the number of a list stays beside its name.

    ``encoder.blocks.0.mixer`` is three deep: encoder, blocks.0, mixer.
    """
    parts: list[str] = []
    for part in name.split("."):
        if part.isdigit():
            parts[-1] += f".{part}"
        else:
            parts.append(part)
    return "  " * len(parts) + parts[-1] if name else "model"
