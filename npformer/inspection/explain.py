"""What each mixer took from which token."""

from __future__ import annotations

from dataclasses import dataclass

from npformer.core import Array, Layer
from npformer.inspection.trace import trace
from npformer.mixers import Mixer


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
