"""explain: the matrices with which mixers mix tokens, such as attention weights."""

from dataclasses import dataclass
from typing import Any

from npformer.core import Array, Layer
from npformer.core.inputs import Inputs
from npformer.inspection.calls import Call
from npformer.inspection.trace import trace
from npformer.mixers import Mixer


@dataclass(frozen=True)
class Explanation:
    """The matrices that one mixer applied.

    Attributes
    ----------
    name, kind : str
        The mixer's dotted name, such as "blocks.0.mixer", and its class.
    matrices : array, shape (batch, heads, length, length)
        Entry (i, j) is the weight of token j in the output for token i. See `Mixer.explain`.
    """

    name: str
    kind: str
    matrices: Array


def explain(
    layer: Layer, x: Inputs, mask: Inputs = None, types: Inputs = None
) -> list[Explanation]:
    """Run a model once, at evaluation, and return the matrices of its mixers, from the bottom up.

    `layer` is a model, an encoder or a mixer; the arguments are those of `trace`. In the matrices,
    rows and columns of padding are 0. A mixer that is a `TwoInputLayer`, too, is asked for
    ``explain(a, b, context)``.
    """
    return [
        Explanation(call.name, type(call.layer).__name__, _matrices(call))
        for call in trace(layer, x, mask, types)
        if isinstance(call.layer, Mixer)
    ]


def _matrices(call: Call) -> Array:
    mixer: Any = call.layer
    return mixer.explain(*call.inputs(), call.context)
