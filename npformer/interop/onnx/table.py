"""Which converter writes which layer."""

from collections.abc import Callable
from typing import Any, TypeVar

from npformer.core import Layer, checks

Converter = Callable[..., Any]
Named = TypeVar("Named", bound=Converter)
CONVERTERS: dict[type[Layer], Converter] = {}
"""{class of layers: its converter}. A subclass computes something else, and has its own."""


def register(*layers: type[Layer]) -> Callable[[Named], Named]:
    """Register how layers of some classes are written as nodes of ONNX: a decorator.

    What is decorated gets the layer, x as a `Value` and the `Graph`, and returns a `Value`: the
    forward pass at evaluation, with ``+ - * / @`` and ``graph.node("Tanh", x)`` for other
    operators.

    Parameters
    ----------
    *layers : subclasses of Layer
        Not including their subclasses.

    Examples
    --------
    >>> import npformer as nf
    >>> class Half(nf.Layer):
    ...     pass
    >>> @nf.interop.onnx.register(Half)
    ... def half(layer, x, graph):
    ...     return x * 0.5
    """
    for layer in layers:
        if not (isinstance(layer, type) and issubclass(layer, Layer)):
            raise TypeError(f"layer is {layer!r}; expected a class of layers")

    def add(converter: Named) -> Named:
        CONVERTERS.update(dict.fromkeys(layers, converter))
        return converter

    return add


def converter_of(layer: Layer) -> Converter:
    """Return the converter of a layer's class."""
    checks.instance("layer", layer, Layer)
    kind = type(layer)
    if kind in CONVERTERS:
        return CONVERTERS[kind]
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} has no converter to ONNX; expected one. Say how it "
        f"is computed: @npformer.interop.onnx.register({kind.__name__}) above a function of "
        "(layer, x, graph) that returns what the layer's forward returns first"
    )
