"""Looking inside: the output of every layer, in the order in which they act."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

from npformer.backend import Array, array_module
from npformer.engine import enabled, fast
from npformer.engine.twins import as_written
from npformer.input_embedding import InputEmbedding
from npformer.mixers import Mixer
from npformer.module import Context, Layer, Parameter


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
    x, mask, types = _prepared(layer, x, mask, types)
    observed = copy.deepcopy(layer)
    calls: list[Call] = []
    names: dict[int, list[str]] = {}
    for name, part in observed.layers():
        names.setdefault(id(part), []).append(name)
    for part in {id(part): part for _, part in observed.layers()}.values():
        _observe(part, names[id(part)], calls)
    observed.forward(x, Context(mask=mask, types=types))
    return calls.copy()  # whoever calls an observed layer again would lengthen the other list


def _prepared(
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


@dataclass(frozen=True)
class Explanation:
    """What one layer mixed with.

    Attributes
    ----------
    name : str
        Dotted name of the mixer; "blocks.0.mixer" for example.
    kind : str
        Its class.
    matrices : array, shape (batch, heads, length, length)
        Entry (i, j): what token i takes from token j. See `Mixer.explain`.
    """

    name: str
    kind: str
    matrices: Array


def explain(
    layer: Layer, x: Array, mask: Array | None = None, types: Array | None = None
) -> list[Explanation]:
    """Run a model once, at evaluation, and return the matrices that its mixers mixed with.

    Parameters
    ----------
    layer : Layer
        An encoder, a model around one, or a mixer.
    x : array
        As the layer takes it, on its backend.
    mask : bool array, shape (batch, length), optional
        Padding: True = keep. Its rows and columns are 0.
    types : int array, shape (batch, length), optional
        Types of the tokens; all 0 if not given.

    Returns
    -------
    explanations : list of Explanation
        One for each mixer, from the bottom up.
    """
    return [
        Explanation(call.name, type(mixer).__name__, mixer.explain(call.input, call.context))
        for call in trace(layer, x, mask, types)
        if isinstance(mixer := call.layer, Mixer)
    ]


def first_non_finite(layer: Layer, x: Array, mask: Array | None = None) -> str | None:
    """Return the name of the first tensor that holds NaN or infinity; None if there is none.

    Looks at the input, then at the parameters, then at each layer's output in the order in which
    they are computed.

    Parameters
    ----------
    layer : Layer
    x : array
        On the layer's backend.
    mask : bool array, shape (batch, length), optional
    """
    x, mask, _ = _prepared(layer, x, mask)
    if x.dtype.kind == "f" and not _finite(x):
        return "the input x"
    if (parameter := non_finite_parameter(layer)) is not None:
        return parameter
    # Inner layers end before outer ones begin to be wrong: the innermost first wrong one is meant.
    calls = trace(layer, x, mask)
    wrong = [call for call in calls if not all(_finite(y) for y in call.outputs())]
    for i, call in enumerate(wrong):
        if _is_innermost(call, wrong[i + 1 : i + 2]):
            return f"the output of {call.name} ({type(call.layer).__name__})"
    return _non_finite_twin(layer, calls)


def _is_innermost(call: Call, next_one: list[Call]) -> bool:
    """Return whether a call is not the one around the call that comes next."""
    return not next_one or not next_one[0].name.startswith(f"{call.name}." if call.name else "")


def _non_finite_twin(model: Layer, calls: list[Call]) -> str | None:
    """Return the name of the first layer whose twin gives what the layer itself does not."""
    layers, wrong = dict(model.layers()), []
    for call in calls:
        layer = layers[call.name]
        twin = fast(layer)
        if twin is not layer:
            y, _ = twin.forward(call.input, call.context)
            parts = y if isinstance(y, tuple) else (y,)
            if not all(part is None or _finite(part) for part in parts):
                wrong.append(call)
    for i, call in enumerate(wrong):
        if _is_innermost(call, wrong[i + 1 : i + 2]):
            return (
                f"the output of {call.name} ({type(call.layer).__name__}), of the engine alone: as "
                "written, the layer gives finite numbers. Train inside "
                "`with npformer.use_kernels(False):`, and report it"
            )
    return None


def non_finite_parameter(layer: Layer) -> str | None:
    """Return the name of the first parameter that holds NaN or infinity; None if there is none.

    Parameters
    ----------
    layer : Layer
    """
    parameters = layer.parameters()
    if parameters.flat is not None and _finite(parameters.flat):  # on a GPU each look waits
        return None
    for name, array in parameters.items():
        if not _finite(array):
            return f"parameter {name}"
    return None


def _finite(x: Array) -> bool:
    return bool(array_module(x).isfinite(x).all())


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
