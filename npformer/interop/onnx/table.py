"""Which converter writes which layer."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from npformer.core import Layer, checks

Converter = Callable[..., Any]
Named = TypeVar("Named", bound=Converter)
CONVERTERS: dict[type[Layer], Converter] = {}
"""{class of layers: its converter}. A subclass computes something else, and has its own."""


@overload
def register(layer: type[Layer]) -> Callable[[Named], Named]: ...


@overload
def register(layer: type[Layer], converter: Named) -> Named: ...


def register(layer: type[Layer], converter: Any = None) -> Any:
    """Register how layers of a class are written as nodes of ONNX.

    Parameters
    ----------
    layer : subclass of Layer
        Not including its subclasses.
    converter : callable, optional
        It gets the layer, x as a `Value` and the `Graph`, and returns a `Value`: the forward pass
        at evaluation, with ``+ - * / @`` and ``graph.node("Tanh", x)`` for other operators.
        Without it, `register` is a decorator.

    Examples
    --------
    >>> import npformer as nf
    >>> class Half(nf.Layer):
    ...     pass
    >>> @nf.interop.onnx.register(Half)
    ... def half(layer, x, graph):
    ...     return x * 0.5
    """
    if not (isinstance(layer, type) and issubclass(layer, Layer)):
        raise TypeError(f"layer is {layer!r}; expected a class of layers")
    if converter is None:
        return lambda decorated: register(layer, decorated)
    if not callable(converter):
        raise TypeError(f"converter is {converter!r}; expected a function of (layer, x, graph)")
    CONVERTERS[layer] = converter
    return converter


def converter_of(layer: Layer) -> Converter:
    """Return the converter of a layer's class."""
    checks.instance("layer", layer, Layer)
    kind = type(layer)
    if kind in CONVERTERS:
        return CONVERTERS[kind]
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} has no converter to ONNX; expected one. Say how it "
        f"is computed: npformer.interop.onnx.register({kind.__name__}, converter), with "
        "converter(layer, x, graph) that returns what the layer's forward returns first"
    )
