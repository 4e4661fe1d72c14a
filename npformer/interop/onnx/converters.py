"""The table of converters: a function for each class of layers."""

from collections.abc import Callable
from typing import Any, TypeVar

from npformer.core import Layer, checks

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)
CONVERTERS: dict[type[Layer], Converter] = {}
"""{class of layers: its converter}. A subclass needs its own: it may compute something else."""


def register(*layers: type[Layer]) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter, which writes layers as nodes of ONNX: a decorator.

    The decorated function gets the layer, x as a `Value` and the `Graph`, and returns a `Value`:
    the forward pass at evaluation, with ``+ - * / @``, and ``graph.node("Tanh", x)`` for other
    operators.

    Parameters
    ----------
    *layers : subclasses of Layer
        The classes that it converts, without their subclasses.

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

    def add(converter: AnyConverter) -> AnyConverter:
        CONVERTERS.update(dict.fromkeys(layers, converter))
        return converter

    return add


def converter_of(layer: Layer) -> Converter:
    """Return the converter of a layer's class."""
    checks.instance("layer", layer, Layer)
    layer_class = type(layer)
    if layer_class in CONVERTERS:
        return CONVERTERS[layer_class]
    raise TypeError(
        f"{layer_class.__module__}.{layer_class.__qualname__} has no converter to ONNX; expected "
        f"one. Write @npformer.interop.onnx.register({layer_class.__name__}) above a function of "
        "(layer, x, graph) that returns the first result of the layer's forward"
    )
