"""What one layer did: its forward pass and its backward pass, as `trace` records them."""

from dataclasses import dataclass
from typing import Any

from npformer.core import Array, Context, Layer


@dataclass(frozen=True, repr=False)
class Call:
    """One layer's forward pass.

    Attributes
    ----------
    name : str
        Dotted name; "" for the outermost layer.
    layer, input, context
        The layer and its arguments; `input` is a tuple if there are several inputs.
    output : array, tuple, or None
        A tuple if the layer returns several arrays, as `TextEncoder` does; None if the pass failed
        inside this layer.
    bytes_cached : int
        Of the arrays that this layer keeps for its backward pass and no layer inside it or before
        it does. Weights do not count. So the sum over all calls is what the whole pass keeps.
    """

    name: str
    layer: Layer
    input: Any
    context: Context
    output: Any
    bytes_cached: int = 0

    def inputs(self) -> tuple[Array, ...]:
        """Return the arrays of the input."""
        return self.input if isinstance(self.input, tuple) else (self.input,)

    def outputs(self) -> tuple[Array, ...]:
        """Return the arrays of the output."""
        return arrays_of(self.output)

    def __repr__(self) -> str:
        cached = f"{self.bytes_cached:,} bytes cached"
        return f"Call({who(self)}: {shapes(self.input)} -> {shapes(self.output)}, {cached})"


@dataclass(frozen=True, repr=False)
class BackwardCall:
    """One layer's backward pass.

    Attributes
    ----------
    name, layer
        As in `Call`.
    context : Context
        That of the forward pass.
    dy, dx : array, tuple, or None
        The gradients of the loss with respect to the layer's output and input: `dx` is a tuple if
        there are two inputs. It is None if the input has no gradient, like token ids, or if the
        pass failed inside this layer.
    """

    name: str
    layer: Layer
    context: Context
    dy: Any
    dx: Any

    def outputs(self) -> tuple[Array, ...]:
        """Return the arrays of dx."""
        return arrays_of(self.dx)

    def __repr__(self) -> str:
        return f"BackwardCall({who(self)}: dy {shapes(self.dy)} -> dx {shapes(self.dx)})"


def arrays_of(value: Any) -> tuple[Array, ...]:
    """Return the arrays in what a pass took or returned: an array, a tuple of them, or None."""
    values = value if isinstance(value, tuple | list) else (value,)
    return tuple(array for array in values if hasattr(array, "shape"))


def shapes(value: Any) -> str:
    """Return the shapes of what a pass took or returned, or "none"."""
    return ", ".join(str(tuple(array.shape)) for array in arrays_of(value)) or "none"


def who(call: Call | BackwardCall) -> str:
    """Return a layer's name and class; the outermost layer has no name."""
    kind = type(call.layer).__name__
    return f"{call.name} ({kind})" if call.name else kind
