"""explain: attention weights, and the mixing weights of other mixers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from npformer.core import Array, Layer
from npformer.core.inputs import Inputs
from npformer.mixers import Mixer
from npformer.training.inspection.calls import Call
from npformer.training.inspection.trace import trace


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
    rows and columns of padding are 0. A mixer that is also a `TwoInputLayer` gets
    ``explain(a, b, context)``.
    """
    return explanations(trace(layer, x, mask, types))


def explanations(calls: Iterable[Call]) -> list[Explanation]:
    """Return the matrices of the mixers among some calls."""
    return [
        Explanation(call.name, type(call.layer).__name__, matrices_of(call))
        for call in calls
        if isinstance(call.layer, Mixer)
    ]


def matrices_of(call: Call) -> Array:
    """Return the matrices that a mixer, or a cross-attention, applied in a call."""
    mixer: Any = call.layer
    return mixer.explain(*call.inputs(), call.context)
