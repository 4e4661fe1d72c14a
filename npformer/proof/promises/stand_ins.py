"""Stand-ins for the layers, models and parameters that an optimizer's method asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.proof.promises.slots import Slot

TENSORS = ("data", "grad"), ("value", "grad"), ("value", "gradient"), ("data", "gradient")
"""What objects of one parameter call it and its gradient."""

LAYERS = (
    ("weights", "biases", "dweights", "dbiases"),
    ("W", "b", "dW", "db"),
    ("weights", "bias", "grad_weights", "grad_bias"),
    ("weights", "bias", "dweights", "dbias"),
    ("weight", "bias", "grad_weight", "grad_bias"),
    ("weight", "bias", "dweight", "dbias"),
    ("w", "b", "dw", "db"),
    ("W", "b", "grad_W", "grad_b"),
    ("weights", "bias", "weights_gradient", "bias_gradient"),
)
"""What layers call two parameters and their gradients."""

KEYS = ("W", "b"), ("weights", "bias")
"""What layers call two parameters in a dict `params`, with their gradients in `grads`."""


class StandInObject:
    """An object with attributes, as a layer or a parameter has them."""

    requires_grad = True
    trainable = True

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # for readers of types: any attribute may be there

    def zero_grad(self) -> None:
        """Do nothing: each step brings new gradients."""


@dataclass
class StandIn:
    """Something that an optimizer's method takes in place of a layer, and its slots."""

    words: str
    items: list[Any]
    slots: list[Slot]


def stand_ins(shapes: list[tuple[int, ...]]) -> Iterator[StandIn]:
    """Yield stand-ins for layers and parameters, of each convention, one after the other."""
    if len(shapes) == 2:
        yield from _layers_of_two(shapes)
    yield _model_of_lists(shapes)
    for value, gradient in TENSORS:
        yield _tensors(shapes, value, gradient)
    yield _tensors_of_tensors(shapes)


def _layers_of_two(shapes: list[tuple[int, ...]]) -> Iterator[StandIn]:
    """Yield layers with weights and a bias."""
    for names in LAYERS:
        zeros = [np.zeros(shape) for shape in shapes * 2]
        layer = StandInObject(**dict(zip(names, zeros, strict=True)))
        slots = [Slot(layer, names[i], layer, names[i + 2]) for i in (0, 1)]
        yield StandIn(f"a layer with {names[0]} and {names[2]}", [layer], slots)
    for keys in KEYS:
        params = _zeros_by_name(keys, shapes)
        grads = _zeros_by_name(keys, shapes)
        layer = StandInObject(params=params, grads=grads)
        slots = [Slot(params, key, grads, key) for key in keys]
        yield StandIn("a layer with params and grads", [layer], slots)


def _zeros_by_name(names: tuple[str, ...], shapes: list[tuple[int, ...]]) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape) for name, shape in zip(names, shapes, strict=True)}


def _model_of_lists(shapes: list[tuple[int, ...]]) -> StandIn:
    """Return a model whose parameters and gradients are in two lists."""
    params = [np.zeros(shape) for shape in shapes]
    grads = [np.zeros(shape) for shape in shapes]
    model = StandInObject(params=params, grads=grads)
    slots = [Slot(params, i, grads, i) for i in range(len(shapes))]
    return StandIn("a model with lists params and grads", [model], slots)


def _tensors(shapes: list[tuple[int, ...]], value: str, gradient: str) -> StandIn:
    """Return an object for each parameter, which holds its gradient, too."""
    tensors = [StandInObject(name=f"p{i}", shape=shape) for i, shape in enumerate(shapes)]
    for tensor, shape in zip(tensors, shapes, strict=True):
        setattr(tensor, value, np.zeros(shape))
        setattr(tensor, gradient, np.zeros(shape))
    slots = [Slot(tensor, value, tensor, gradient) for tensor in tensors]
    return StandIn(f"parameters with {value} and {gradient}", tensors, slots)


def _tensors_of_tensors(shapes: list[tuple[int, ...]]) -> StandIn:
    """Return an object for each parameter, whose gradient is such an object, too."""
    gradients = [StandInObject(data=np.zeros(shape), shape=shape) for shape in shapes]
    tensors = [StandInObject(data=np.zeros_like(g.data), grad=g, shape=g.shape) for g in gradients]
    pairs = zip(tensors, gradients, strict=True)
    slots = [Slot(tensor, "data", gradient, "data") for tensor, gradient in pairs]
    return StandIn("parameters with data and grad.data", tensors, slots)
