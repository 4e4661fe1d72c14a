"""The fast version of a model: its twin.

A twin has a class from `twin_classes` and shares the layer's own ``__dict__``, so it always has the
same parameters and settings, even after a user changes the model.

If a layer's class is not in the table, the layer runs as written, and so do its children. A
subclass of a container in the table (`Encoder`, `Sequential`, `SequenceClassifier`) is a container
too if it overrides none of the container's methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from npformer.core import Array, Layer, a_type, get_backend, is_host_array
from npformer.core.dispatch import enabled, register
from npformer.engine.kernel_tables import KernelPair, kernels_of
from npformer.engine.trusted_kernels import is_trusted
from npformer.engine.twin_classes import FLOATS, TABLE, Fast, has_own_pass, model_cache

Model = TypeVar("Model", bound=Layer)


@dataclass(eq=False)
class Twins:
    """The twins of all layers of a model, each made when first needed.

    `kernels` are those of the model's backend, by name, for arrays of `array_type`.
    """

    kernels: Mapping[str, KernelPair]
    array_type: type
    root: Layer | None = None  # keeps the model alive for a caller who holds only its twin
    caches: dict[int, Any] = field(default_factory=dict)  # see `model_cache`
    _by_id: tuple[dict[int, Any], dict[int, Any]] = field(default_factory=lambda: ({}, {}))

    def __post_init__(self) -> None:
        self._exact = self.array_type is np.ndarray  # a subclass may redefine any operator

    def kernel(self, name: str, x: Array) -> KernelPair | None:
        """Return a pair of kernels for arrays like x; None if there is none."""
        char = x.dtype.char
        if char not in FLOATS or not enabled():
            return None
        if self._exact:
            return self.kernels.get(name) if is_host_array(x) else None
        pair = self.kernels.get(name) if isinstance(x, self.array_type) else None
        return pair if pair is None or is_trusted(name, char) else None

    def twin_of(self, layer: Any, first: bool = False) -> Any:
        """Return the twin of a layer, or the layer itself if it has none.

        For a list of layers, return the list of their twins. `first`: the input of the layer, or of
        the first layer of the list, may be data.
        """
        # The layer is stored, too, so that no other object gets its id.
        _, layer_class, twin = self._by_id[first].get(id(layer), (None, None, None))
        if type(layer) is layer_class:
            attributes = layer.__dict__  # `has_own_pass` without the call, which runs often
            if "forward" not in attributes and "backward" not in attributes:
                return twin
        if isinstance(layer, (list, tuple)):
            return [self.twin_of(child, first and i == 0) for i, child in enumerate(layer)]
        if not isinstance(layer, Layer):
            return layer
        twin = self.make(layer, first)
        if twin is not layer:
            self._by_id[first][id(layer)] = (layer, type(layer), twin)
        return twin

    def make(self, layer: Layer, first: bool) -> Layer:
        """Return a new twin; the layer itself if it has none."""
        twin_class = TABLE.find(type(layer), first)
        if twin_class is None or has_own_pass(layer):
            return layer
        twin: Any = object.__new__(twin_class)
        twin.__dict__ = layer.__dict__
        twin._twins = self
        return twin  # type: ignore[no-any-return]

    def release(self) -> None:
        """Drop all twins; one that is still in use makes new twins of its children."""
        for twins in self._by_id:
            twins.clear()


def fast(model: Model, *, of_data: bool = False) -> Model:
    """Return the twin of a model: the same layers and parameters, with fast passes.

    It computes what the model computes, up to rounding, and `use_kernels(False)` switches it off.
    It shares everything with the model, so a weight, setting or layer that changes in the model
    changes in the twin. After a move to another backend, call `fast` again.

    Parameters
    ----------
    model : Layer
        Any layer. One that the engine does not know is returned as it is.
    of_data : bool
        Whether x is data, which needs no gradient: `backward` does not compute it if the first
        layer allows that, and returns None.

    Returns
    -------
    twin : Layer

    Examples
    --------
    >>> twin = npformer.fast(encoder)
    >>> y, cache = twin.forward(x, npformer.Context())
    >>> dx = twin.backward(dy, cache, gradients)     # gradients = npformer.Gradients(encoder)
    """
    if not isinstance(model, Layer):
        raise TypeError(
            f"model is {a_type(model)}; expected a Layer, such as an Encoder or a "
            "SequenceClassifier. A pair of npformer.functional has no twin"
        )
    twin = twin_on(model.backend, model, of_data)
    if twin is not model and not isinstance(model, Fast):
        twin._twins.root = model  # type: ignore[attr-defined]
    return twin


def _twin_of(layer: Layer) -> Layer | None:
    twin = fast(layer)
    return None if twin is layer else twin


register(Layer, _twin_of)


def twin_on(backend: str, model: Model, of_data: bool = False) -> Model:
    """Do what `fast` does for a caller who knows the model's backend and keeps the model alive."""
    if not enabled() or isinstance(model, Fast) or has_own_pass(model):
        return model
    twins, key = model_cache(model).twins, (backend, of_data)
    cached = twins.get(key)
    if cached is not None and cached[0] is type(model):
        return cached[1]  # type: ignore[no-any-return]
    kernels = kernels_of(backend)
    if kernels is None:
        return model
    twin = Twins(kernels, get_backend(backend).array_type).make(model, of_data)
    if twin is not model:
        twins[key] = type(model), twin
    return twin  # type: ignore[return-value]


def plain_layer_ids(model: Layer) -> set[int]:
    """Return the ids of the layers in a model that run as written."""
    ids: set[int] = set()

    def visit(layer: Layer, twin: Any) -> None:
        has_fast_class = TABLE.find(type(layer)) is not None and twin is not layer
        skipped_ids: set[int] = set()
        if has_fast_class:
            skipped_ids = {id(child) for child in twin.passes_over()}
        else:
            ids.add(id(layer))
        for _, child in layer.children():
            if isinstance(child, Layer) and id(child) not in skipped_ids:
                visit(child, child if twin is layer else twin._twins.twin_of(child))

    visit(model, fast(model))
    return ids


def has_twin(layer: Layer) -> bool:
    """Return whether a layer has a twin, so that it does not run as written."""
    return TABLE.find(type(layer)) is not None and not has_own_pass(layer)
