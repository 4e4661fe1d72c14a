"""summary: a table of all layers of a model."""

import math
from html import escape

from npformer.core import Layer, Parameter, checks
from npformer.core.inputs import Inputs
from npformer.core.support.tables import align_columns
from npformer.engine import enabled
from npformer.engine.twins import plain_layer_ids
from npformer.training.inspection.example import example_of
from npformer.training.inspection.trace import trace
from npformer.training.inspection.trace_table import label


class Summary(str):
    """A table that shows itself as it is printed, also in notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def summary(layer: Layer, x: Inputs = None, mask: Inputs = None) -> Summary:
    """Return a table of all layers: name, kind, shape of the output, number of own parameters.

    "runs as written" marks layers for which the engine has no fast twin, "frozen" those with
    parameters that `Layer.freeze` took out of the training. `x` and `mask` are examples of inputs;
    only their shapes and dtypes matter. For a layer with two inputs, both are tuples. Without `x`,
    one sample of the greatest length is made, for models of the package: other layers need an `x`.
    """
    checks.instance("layer", layer, Layer)
    if x is None:
        x = example_of(layer)
    counted: set[int] = set()
    plain = plain_layer_ids(layer) if enabled() else set()
    by_name = dict(layer.layers())
    rows = [("layer", "kind", "output", "parameters", "")]
    for call in trace(layer, x, mask):
        parameters = [child for _, child in call.layer.children() if isinstance(child, Parameter)]
        shape = ", ".join(str(tuple(y.shape)) for y in call.outputs())
        count = _count(parameters, already_counted=id(call.layer) in counted)
        counted.add(id(call.layer))
        notes = _notes(parameters, runs_as_written=id(by_name[call.name]) in plain)
        rows.append((label(call.name), type(call.layer).__name__, shape, count, notes))
    head, *lines = align_columns(rows, "<<<><")
    rule = "-" * len(head)
    frozen = sum(parameter.size for parameter in layer.frozen().values())
    and_frozen = f", {frozen:,} frozen" if frozen else ""
    total = f"{layer.n_parameters():,} trained parameters{and_frozen}, {layer.dtype}"
    return Summary("\n".join([head, rule, *lines, rule, total]))


def _notes(parameters: list[Parameter], runs_as_written: bool) -> str:
    """Return what the table notes about a layer."""
    notes = []
    if any(not (p.trainable or p.constant) for p in parameters):
        notes.append("frozen")
    if runs_as_written:
        notes.append("runs as written")
    return ", ".join(notes)


def _count(parameters: list[Parameter], already_counted: bool) -> str:
    """Return how many numbers a layer's own parameters have, as the table says it."""
    if not parameters:
        return ""
    if already_counted:
        return "shared"
    return f"{sum(math.prod(p.shape) for p in parameters if not p.constant):,}"
