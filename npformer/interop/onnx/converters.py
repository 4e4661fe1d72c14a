"""The table of converters: a function for each class of layers, or of losses."""

from collections.abc import Callable
from typing import Any, TypeVar

from npformer.core import Layer, checks
from npformer.models.losses import Loss

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)
CONVERTERS: dict[type[Any], Converter] = {}
"""{class of layers or losses: its converter}. A subclass needs its own: its result may differ."""


def register(*classes: type[Layer] | type[Loss]) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter, which writes layers or losses as nodes of ONNX: a decorator.

    The decorated function gets the layer, x as a `Value` and the `Graph`, and returns a `Value`:
    the forward pass at evaluation, with ``+ - * / @``, and ``graph.node("Tanh", x)`` for other
    operators. The converter of a loss gets the loss, the model's outputs and the `Graph`, and
    returns the probabilities of the classes.

    Parameters
    ----------
    *classes : subclasses of Layer or of Loss
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
    for value in classes:
        if not (isinstance(value, type) and issubclass(value, Layer | Loss)):
            raise TypeError(f"layer is {value!r}; expected a class of layers or of losses")

    def add(converter: AnyConverter) -> AnyConverter:
        CONVERTERS.update(dict.fromkeys(classes, converter))
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


def converter_of_loss(loss: Loss | None) -> Converter | None:
    """Return the converter of a loss's class; None if it has none."""
    return CONVERTERS.get(type(loss))
