"""trace: the output of every layer, in the order of computation."""

import copy
from dataclasses import dataclass
from typing import Any

from npformer.core import Array, Context, Layer, backend_of, checks
from npformer.models import InputEmbedding


@dataclass(frozen=True)
class Call:
    """One layer's forward pass.

    Attributes
    ----------
    name : str
        Dotted name; "" for the outermost layer.
    layer, input, context
        The layer and its arguments.
    output : array, tuple, or None
        A tuple if the layer returns several arrays, as `TextEncoder` does; None if the pass failed
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
    """Run a layer once, at evaluation, and return the calls of every layer inside it.

    A layer comes before the layers inside it. A copy is run, so that other threads may use the
    layer meanwhile. `x` is on the layer's backend, but a model also takes host arrays; `mask` and
    `types` are as in `SequenceClassifier.__call__`.
    """
    checks.instance("layer", layer, Layer)
    x, mask, types = prepared(layer, x, mask, types)
    observed = copy.deepcopy(layer)
    calls: list[Call] = []
    places: dict[int, tuple[Layer, list[str]]] = {}
    for name, part in observed.layers():
        places.setdefault(id(part), (part, []))[1].append(name)
    for part, names in places.values():
        _observe(part, names, calls)
    observed.forward(x, Context(mask=mask, types=types))
    return calls.copy()  # calling a traced layer later appends to the other list only


def prepared(
    layer: Layer, x: Array, mask: Array | None, types: Array | None = None
) -> tuple[Array, Array | None, Array | None]:
    """If the layer is a model, return its inputs checked, uploaded and with padding set to 0."""
    embed = layer if isinstance(layer, InputEmbedding) else getattr(layer, "embed", None)
    if not isinstance(embed, InputEmbedding):
        backend_of(x=x) if mask is None else backend_of(x=x, mask=mask)
        if mask is not None:
            checks.mask("mask", mask, tuple(x.shape[:2]))
        return x, mask, types
    x, mask = embed.prepare(x, mask)
    return x, mask, embed.prepare_types(types, x)


def _observe(part: Layer, names: list[str], calls: list[Call]) -> None:
    """Make a layer record its calls. A shared layer has several names, which take turns."""
    forward = part.forward
    turn = 0

    def recorded(x: Array, context: Context) -> tuple[Array, Any]:
        nonlocal turn
        place, name = len(calls), names[min(turn, len(names) - 1)]
        turn += 1
        calls.append(Call(name, part, x, context, None))
        y, cache = forward(x, context)
        calls[place] = Call(name, part, x, context, y)
        return y, cache

    part.forward = recorded  # type: ignore[method-assign]
