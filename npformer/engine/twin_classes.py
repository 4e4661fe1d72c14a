"""The classes of the fast versions of layers: the table, and what all such classes share.

A layer's fast version is its twin. The twin's class is a subclass of the layer's class with other
forward and backward passes. If the layer has children, the twin's class has a `Child` for each,
which looks up the twin of whatever child the layer has at that moment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Parameter
from npformer.core.attachment import ATTACHMENT, attachment
from npformer.engine.context import as_engine_context

FLOATS = "fd"
"""The dtypes of kernels, float32 and float64, as codes; other arrays run in the plain layers."""


@dataclass(eq=False, slots=True)
class Saved:
    """A forward pass's cache if a kernel computed it: what it saved, and the backward kernel."""

    backward: Callable[..., Any]
    cache: Any
    parameters: Sequence[Parameter | None] = ()

    def add_gradients(self, dy: Array, gradients: Gradients, **options: Any) -> Any:
        """Add the gradients of the parameters, those that there are, and return that of x."""
        result = self.backward(dy, self.cache, **options)
        if not self.parameters:
            return result
        parameters = [parameter for parameter in self.parameters if parameter is not None]
        for parameter, gradient in zip(parameters, result[1:], strict=True):
            gradients.add(parameter, gradient.reshape(parameter.shape))
        return result[0]


class Fast:
    """First base of all classes of twins; the plain class follows."""

    __slots__ = ()
    _twins: Any = ATTACHMENT  # the `Twins` that it belongs to, outside of __dict__

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy or pickle a twin as the layer itself."""
        plain = next(kind for kind in type(self).__mro__ if not issubclass(kind, Fast))
        return object.__new__, (plain,), self.__dict__

    def passes_over(self) -> tuple[Any, ...]:
        """Return the children that do not run, because a kernel computes what they would."""
        return ()

    def run(
        self,
        name: str,
        x: Array,
        parameters: Sequence[Parameter | None],
        *settings: Any,
        context: Context,
        values: Sequence[Array | None] | None = None,
        like: Array | None = None,
    ) -> tuple[Array, Any] | None:
        """Return the result of a kernel, and what its backward pass needs; None without a kernel.

        It takes the values of the parameters, or `values` in their place, and the settings. It is
        one for arrays like x, or like `like` if x has ids.
        """
        kernel = self._twins.kernel(name, x if like is None else like)
        if kernel is None:
            return None
        if values is None:
            values = [None if one is None else one.value for one in parameters]
        y, cache = kernel[0](x, *values, *settings, context=as_engine_context(context))
        return y, Saved(kernel[1], cache, parameters) if context.keep else None


class ByKernel(Fast):
    """A layer whose passes may be a kernel's: the subclass has the forward pass, by `run`."""

    __slots__ = ()
    options: Mapping[str, Any] = {}  # of the backward kernel

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Any:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)  # type: ignore[misc]
        return cache.add_gradients(dy, gradients, **self.options)


class Child:
    """An attribute of a twin: the twin, or the twins, of what the layer has under that name."""

    first = False

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, twin: Any, owner: type | None = None) -> Any:
        if twin is None:
            return self
        try:
            child = twin.__dict__[self.name]
        except KeyError:
            what = f"{type(twin).__name__} has no attribute {self.name!r}"
            raise AttributeError(what) from None
        return None if child is None else twin._twins.of(child, self.first)

    def __set__(self, twin: Any, value: Any) -> None:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Fast):
                raise TypeError(
                    f"{self.name} of a twin is set to a twin; expected the layer itself, because "
                    "both share what they have. Set it in the model"
                )
        twin.__dict__[self.name] = value

    def __delete__(self, twin: Any) -> None:
        del twin.__dict__[self.name]


class FirstChild(Child):
    """A child that gets the layer's own input: if that is data, it needs no gradient.

    Of a list it is the first.
    """

    first = True


def is_exactly(layer: Any, kind: type) -> bool:
    """Return whether a layer is of exactly this class, and has no passes set on the object."""
    return type(layer) is kind and not has_own_pass(layer)


def has_own_pass(layer: Any) -> bool:
    """Return whether a forward or backward pass is set on the object itself."""
    attributes = layer.__dict__
    return "forward" in attributes or "backward" in attributes


class Table:
    """Which class the twin of a layer has, by the layer's exact class.

    `first` has other classes for layers whose input is data, which needs no gradient.
    """

    def __init__(self) -> None:
        self.classes: dict[type, type] = {}
        self.first: dict[type, type] = {}
        self._found: dict[tuple[type, bool], type | None] = {}

    def add(self, plain: type, fast: type, **first: Any) -> None:
        """Give layers of exactly the class `plain` twins of the class `fast`.

        `first`: attributes of the twin's class, if the layer's input is data.
        """
        self.classes[plain] = fast
        if first:
            self.first[plain] = _subclass(f"First{plain.__name__}", (fast,), first)
        self._found.clear()

    def add_container(self, plain: type, *children: str, **first: Any) -> None:
        """Give layers of the class `plain` twins with the same passes and fast layers in them.

        `children` are names of layers, or of lists of layers; `first` as for `add`.
        """
        attributes = {name: Child() for name in children}
        self.add(plain, _subclass(f"Fast{plain.__name__}", (Fast, plain), attributes), **first)

    def find(self, kind: type, first: bool = False) -> type | None:
        """Return the class of the twins of layers of this class; None if they have no twins."""
        key = kind, first
        try:
            return self._found[key]
        except KeyError:
            twin_class = self.first.get(kind) if first else None
            twin_class = twin_class or self.classes.get(kind) or self._container(kind, first)
            self._found[key] = twin_class
            return twin_class

    def _container(self, kind: type, first: bool) -> type | None:
        """Make a class for twins of a user's subclass of a container, such as `Encoder`.

        Return None if it is not such a subclass, or overrides a method of the container.
        """
        known = next((base for base in kind.__mro__ if base in self.classes), None)
        if known is None:
            return None
        fast = (first and self.first.get(known)) or self.classes[known]
        children = {
            name: type(value)()
            for base in reversed(fast.__mro__)
            for name, value in vars(base).items()
            if isinstance(value, Child)
        }
        # What a model needs for training, such as `Model`, notices no twin.
        above = kind.__mro__[: kind.__mro__.index(known)]
        other_bases = [
            base for base in above if not base.__module__.startswith("npformer.models.trainable.")
        ]
        defined = {name for base in other_bases for name in vars(base)}
        layers = [base for base in known.__mro__ if issubclass(base, Layer)]
        names = {name for base in layers for name in vars(base)} | set(children)
        passes = {name for name in names if not _special(name)} - {"arguments"}
        if not children or defined & (passes | NOT_ALLOWED):
            return None
        attributes = {"__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__}
        try:
            return type(kind)(kind.__name__, (Fast, kind), attributes | children)
        except TypeError:  # the metaclass takes other arguments
            return None


NOT_ALLOWED = {"__getattribute__", "__getattr__", "__init_subclass__", "__setattr__", "__del__"}
"""Special methods that would notice a twin. Other special methods play no part in a pass."""


def _subclass(name: str, bases: tuple[type, ...], names: Mapping[str, Any]) -> type:
    return type(name, bases, {"__slots__": (), **names})


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


TABLE = Table()
"""Filled by `fast_linear`, `fast_layers`, `fast_mixers` and `fast_models`."""


@dataclass(eq=False, slots=True)
class ModelCache:
    """What is kept with a model while it lives: its twins, a snapshot, and memory.

    It is stored on the model itself, so both are freed together even if the model refers to itself.
    """

    twins: dict[tuple[str, bool], Any] = field(default_factory=dict)  # of backend and `of_data`
    snapshot: Any = None  # see `snapshot_of`
    workspaces: list[Any] = field(default_factory=list)  # a list for each call at the same time

    def release(self) -> None:
        """Drop everything that refers to layers, which may no longer be in the model."""
        self.snapshot = None
        twins, self.twins = self.twins, {}  # in one step, because other threads may read it
        for _, twin in list(twins.values()):
            twin._twins.release()


def model_cache(model: Layer) -> ModelCache:
    """Return what is kept with a model; a twin's is in the `Twins` that it belongs to."""
    attached = attachment(model)
    if type(attached) is ModelCache:
        return attached
    if attached is not None:
        return attached.caches.setdefault(id(model), ModelCache())  # type: ignore[no-any-return]
    new = ModelCache()
    ATTACHMENT.__set__(model, new)
    return new
