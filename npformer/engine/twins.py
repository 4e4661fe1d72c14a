"""Twins: the same tree of layers with other forward and backward passes.

A twin is an object of a subclass of its layer's class that shares the layer's own ``__dict__``: the
same parameters, the same settings, live. Where the layer has children, the twin's class finds,
under the same names, the twins of the children that the layer has at that moment. So nothing has
to be kept in step: what a user puts into a model is what its twin runs.

Layers of a class that is not in the engine's table have no twin: they run as they are written, and
so does what is inside them. A subclass of a container that the engine knows (`Encoder`,
`Sequential`, `SequenceClassifier`) is a container like any other as long as it has no method of its
own in the place of one of the container's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from npformer.core import KEPT, Array, Layer, get_backend
from npformer.engine.kept import kept_of
from npformer.engine.switch import enabled

Model = TypeVar("Model", bound=Layer)
Kernel = tuple[Callable[..., tuple[Array, Any]], Callable[..., Any]]

FLOATS = "fd"
"""Kernels are for float32 and float64; arrays of other kinds run plain."""


class Saved:
    """What a kernel saved for its backward pass; a plain forward pass leaves something else."""

    __slots__ = ("backward", "cache")

    def __init__(self, backward: Callable[..., Any], cache: Any) -> None:
        self.backward = backward
        self.cache = cache


class Fast:
    """What the classes of twins have in common. They stand before the plain class they replace."""

    __slots__ = ()
    _twins: Twins = KEPT  # its place beside the twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let a copy of a twin, or what is read from a pickle of it, be the layer itself."""
        plain = next(kind for kind in type(self).__mro__ if not issubclass(kind, Fast))
        return _empty, (plain,), self.__dict__

    def passes_over(self) -> tuple[Any, ...]:
        """Return the children that do not run, for a kernel does what they do."""
        return ()


def _empty(kind: type) -> Any:
    return object.__new__(kind)


class Child:
    """An attribute of a twin under which it finds the twin of its layer's child."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, twin: Any, owner: type | None = None) -> Any:
        if twin is None:
            return self
        child = twin.__dict__.get(self.name)
        if child is not None:
            return self.find(twin._twins, child)
        if self.name not in twin.__dict__:
            raise AttributeError(f"{type(twin).__name__} has no attribute {self.name!r}")
        return None

    def __set__(self, twin: Any, value: Any) -> None:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, Fast):
                raise TypeError(
                    f"{self.name} of a twin is set to a twin; expected the layer itself, for both "
                    "share what they have. Set it in the model"
                )
        twin.__dict__[self.name] = value

    def __delete__(self, twin: Any) -> None:
        del twin.__dict__[self.name]

    def find(self, twins: Twins, child: Any) -> Any:
        """Return the twin, or twins, of what the layer has under this name."""
        return twins.of(child)


class FirstChild(Child):
    """The first child of a first layer: the gradient of its input is not asked for."""

    def find(self, twins: Twins, child: Any) -> Any:
        """Return the twin of a layer whose input is data."""
        return twins.of_first(child)


class Children(Child):
    """The twins of a list of layers, as a list."""

    def find(self, twins: Twins, child: Any) -> Any:
        """Return their twins."""
        return [twins.of(one) for one in child]


class FirstOfChildren(Children):
    """The twins of a list of layers of which the first one is a first layer."""

    def find(self, twins: Twins, child: Any) -> Any:
        """Return their twins."""
        found = super().find(twins, child)
        return [*map(twins.of_first, child[:1]), *found[1:]]


class Table:
    """Which class the twins of a layer's class have.

    Attributes
    ----------
    classes : dict of type to type
        By the exact class of a layer.
    first : dict of type to type
        The same where a layer's input is data, whose gradient nobody asks for.
    """

    def __init__(self) -> None:
        self.classes: dict[type, type] = {}
        self.first: dict[type, type] = {}
        self._made: dict[tuple[type, bool], type | None] = {}

    def add(self, plain: type, fast: type, first: type | None = None) -> None:
        """Let layers of exactly this class have twins of that one."""
        self.classes[plain] = fast
        if first is not None:
            self.first[plain] = first
        self._made.clear()

    def find(self, kind: type, first: bool = False) -> type | None:
        """Return the class of the twins of a layer's exact class; None if they have none."""
        key = kind, first
        try:
            return self._made[key]
        except KeyError:
            found = self.first.get(kind) if first else None
            found = found or self.classes.get(kind) or self._container(kind, first)
            self._made[key] = found
            return found

    def _container(self, kind: type, first: bool) -> type | None:
        """Return a class for the twins of a subclass whose passes are those of a container.

        None if there is no container above, or the subclass has a method of its own in the place of
        one of the container's: it then runs as it is written.
        """
        known = next((base for base in kind.__mro__ if base in self.classes), None)
        if known is None:
            return None
        fast = (first and self.first.get(known)) or self.classes[known]
        children = {
            name: type(found)()
            for base in reversed(fast.__mro__)
            for name, found in vars(base).items()
            if isinstance(found, Child)
        }
        own = {name for base in kind.__mro__[: kind.__mro__.index(known)] for name in vars(base)}
        theirs = {name for base in known.__mro__ if issubclass(base, Layer) for name in vars(base)}
        passes = {name for name in theirs | set(children) if not _special(name)} - {"arguments"}
        if not children or own & (passes | UPSETTING):
            return None
        names = {"__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__}
        try:
            return type(kind)(kind.__name__, (Fast, kind), names | children)
        except TypeError:  # a metaclass that wants to be told more
            return None


UPSETTING = {"__getattribute__", "__getattr__", "__init_subclass__", "__setattr__", "__del__"}
"""What a twin could upset. Python's other special methods have no part in a pass."""


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


TABLE = Table()
"""The engine's. `npformer.engine.layers`, `.mixers` and `.models` fill it."""


class Twins:
    """The twins of one tree, made when they are first asked for.

    Parameters
    ----------
    kernels : mapping of str to (forward, backward)
        Of the tree's backend.
    array_type : type
        What they compute with.
    """

    def __init__(self, kernels: Mapping[str, Kernel], array_type: type) -> None:
        self.root: Layer | None = None  # for who holds a twin alone
        self.kept: dict[int, Any] = {}
        self.kernels = kernels
        self._array_type = array_type
        self._exact = array_type is np.ndarray  # a subclass may mean anything by its operators
        self._made: dict[int, tuple[Layer, type, Layer]] = {}
        self._first: dict[int, tuple[Layer, type, Layer]] = {}

    def kernel(self, name: str, x: Array) -> Kernel | None:
        """Return a pair of kernels for arrays such as x; None if there is none."""
        if x.dtype.char not in FLOATS or not enabled():
            return None
        if type(x) is not self._array_type and (self._exact or not isinstance(x, self._array_type)):
            return None
        return self.kernels.get(name)

    def of(self, layer: Any, first: bool = False) -> Any:
        """Return the twin of a layer; the layer itself if it has none."""
        made = (self._first if first else self._made).get(id(layer))
        if made is not None:
            kept, kind, twin = made
            if kept is layer and type(layer) is kind:
                own = layer.__dict__
                if "forward" not in own and "backward" not in own:
                    return twin
        if not isinstance(layer, Layer):
            return layer
        twin = self.make(layer, first)
        if twin is not layer:
            (self._first if first else self._made)[id(layer)] = (layer, type(layer), twin)
        return twin

    def release(self) -> None:
        """Let go of all twins; who holds one finds those below it anew."""
        self._made.clear()
        self._first.clear()

    def of_first(self, layer: Any) -> Any:
        """Return the twin of a layer whose input is data."""
        return self.of(layer, first=True)

    def make(self, layer: Layer, first: bool) -> Layer:
        """Return a new twin; the layer itself if it has none, or a pass of its very own."""
        attributes = layer.__dict__
        kind = TABLE.find(type(layer), first)
        if kind is None or "forward" in attributes or "backward" in attributes:
            return layer
        twin: Any = object.__new__(kind)
        twin.__dict__ = attributes
        twin._twins = self
        return twin  # type: ignore[no-any-return]


def fast(model: Model, *, of_data: bool = False) -> Model:
    """Return the twin of a model: the same tree and parameters, made fast.

    What it computes is what the model computes, up to rounding; `use_kernels(False)` switches it
    off. It shares everything with the model: what is changed there, a weight, a setting, a layer,
    is changed here. Ask for it again after a move to another backend.

    Parameters
    ----------
    model : Layer
        Any layer. One that the engine does not know is returned as it is.
    of_data : bool
        Whether x is data: `backward` then saves the product for its gradient where the first layer
        is one that can, and returns None.

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
            f"model is a {type(model).__name__}; expected a Layer, such as an Encoder or a "
            "SequenceClassifier. A pair of npformer.functional has no twin"
        )
    twin = twin_on(model.backend, model, of_data)
    if twin is not model and not isinstance(model, Fast):
        twin._twins.root = model  # type: ignore[attr-defined]
    return twin


def twin_on(backend: str, model: Model, of_data: bool = False) -> Model:
    """Return what `fast` does, for who knows the model's backend and holds the model."""
    if not enabled() or isinstance(model, Fast):
        return model
    attributes = model.__dict__
    if "forward" in attributes or "backward" in attributes:
        return model
    twins, key = kept_of(model).twins, (backend, of_data)
    found = twins.get(key)
    if found is not None and found[0] is type(model):
        return found[1]  # type: ignore[no-any-return]
    kernels = kernels_of(backend)
    if kernels is None:
        return model
    twin = Twins(kernels, get_backend(backend).array_type).make(model, of_data)
    if twin is not model:
        twins[key] = type(model), twin
    return twin  # type: ignore[return-value]


def kernels_of(backend: str) -> Mapping[str, Any] | None:
    """Return the kernels of a backend by name; None if it has none."""
    if backend == "numpy":
        from npformer.engine import cpu

        return cpu.KERNELS
    if backend == "cupy":
        from npformer.engine import gpu

        return gpu.KERNELS
    return None


def as_written(model: Layer) -> set[int]:
    """Return the identities of the layers in a model that run as they are written.

    Parameters
    ----------
    model : Layer
    """
    found: set[int] = set()

    def visit(layer: Layer, twin: Any) -> None:
        known = TABLE.find(type(layer)) is not None and twin is not layer
        if not known:
            found.add(id(layer))
        passed_over = set(map(id, twin.passes_over())) if known else set()
        for _, child in layer.children():
            if isinstance(child, Layer) and id(child) not in passed_over:
                visit(child, child if twin is layer else twin._twins.of(child))

    visit(model, fast(model))
    return found


def has_twin(layer: Layer) -> bool:
    """Return whether a layer has a fast class of its own, and so does not run as it is written."""
    known = TABLE.find(type(layer)) is not None
    return known and "forward" not in layer.__dict__ and "backward" not in layer.__dict__
