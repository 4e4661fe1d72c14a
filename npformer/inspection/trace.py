"""Looking inside: the output of every layer, in the order in which they act."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from npformer.core import Array, Context, Layer
from npformer.models import InputEmbedding


@dataclass(frozen=True)
class Call:
    """One layer's forward pass.

    Attributes
    ----------
    name : str
        Dotted name; "" for the outermost layer.
    layer : Layer
    input : array
    context : Context
    output : array, tuple, or None
        A tuple of arrays from a layer that gives several, as `TextEncoder`; None if the pass failed
        inside this layer.
    """

    name: str
    layer: Layer
    input: Array
    context: Context
    output: Array | None

    def outputs(self) -> tuple[Array, ...]:
        """Return the arrays of the output."""
        several = self.output if isinstance(self.output, tuple) else (self.output,)
        return tuple(array for array in several if array is not None)


def trace(
    layer: Layer, x: Array, mask: Array | None = None, types: Array | None = None
) -> list[Call]:
    """Run a layer once, at evaluation, and return what every layer inside it gave.

    The run happens on a copy, so a layer that other threads are using is not touched.

    Parameters
    ----------
    layer : Layer
    x : array
        On the layer's backend. A model also takes host arrays: what stands before its encoder
        checks and uploads them.
    mask : bool array, shape (batch, length), optional
        Padding: True = keep.
    types : int array, shape (batch, length), optional
        Types of the tokens; all 0 if not given.

    Returns
    -------
    calls : list of Call
        Outer layers stand before what is inside them.
    """
    x, mask, types = prepared(layer, x, mask, types)
    observed = copy.deepcopy(layer)
    calls: list[Call] = []
    names: dict[int, list[str]] = {}
    for name, part in observed.layers():
        names.setdefault(id(part), []).append(name)
    for part in {id(part): part for _, part in observed.layers()}.values():
        _observe(part, names[id(part)], calls)
    observed.forward(x, Context(mask=mask, types=types))
    return calls.copy()  # whoever calls an observed layer again would lengthen the other list


def prepared(
    layer: Layer, x: Array, mask: Array | None, types: Array | None = None
) -> tuple[Array, Array | None, Array | None]:
    """Return inputs as a model makes them at its edge, where padding's features become 0."""
    edge = layer if isinstance(layer, InputEmbedding) else getattr(layer, "embed", None)
    if not isinstance(edge, InputEmbedding):
        return x, mask, types
    x, mask = edge.prepare(x, mask)
    return x, mask, edge.prepare_types(types, x)


def _observe(part: Layer, names: list[str], calls: list[Call]) -> None:
    """Make one object note its calls; a layer that stands in several places is named in turn."""
    forward = part.forward
    turn = 0

    def noted(x: Array, context: Context) -> tuple[Array, Any]:
        nonlocal turn
        place, name = len(calls), names[min(turn, len(names) - 1)]
        turn += 1
        calls.append(Call(name, part, x, context, None))
        y, cache = forward(x, context)
        calls[place] = Call(name, part, x, context, y)
        return y, cache

    part.forward = noted  # type: ignore[method-assign]
