"""The classes of fast versions of layers: their table, and their common bases.

A layer's fast version is its twin. The twin's class is a subclass of the layer's class with other
forward and backward passes. If the layer has children, the twin's class has a `Child` for each,
which looks up the twin of the layer's current child.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Parameter
from npformer.core.attachment import ATTACHMENT, attachment
from npformer.engine.context import engine_context

LONGEST, PRODUCTS = 128, 1 << 20
"""Short sequences have at most `LONGEST` tokens, and batch x length x d_model^2 is at most
`PRODUCTS`. Beyond either, calls shared among threads, or by a faster BLAS, take less time, and
memory that is lent pays."""

FLOATS = "fd"
"""Codes of the dtypes of kernels, float32 and float64; for others the plain layers run."""


@dataclass(eq=False, slots=True)
class Saved:
    """The cache of a forward pass by a kernel: the kernel's cache, and the backward kernel."""

    backward: Callable[..., Any]
    cache: Any
    parameters: Sequence[Parameter | None] = ()

    def add_gradients(self, dy: Array, gradients: Gradients, **options: Any) -> Any:
        """Add the gradients of all parameters that are not None, and return the gradient of x."""
        result = self.backward(dy, self.cache, **options)
        if not self.parameters:
            return result
        parameters = [parameter for parameter in self.parameters if parameter is not None]
        for parameter, gradient in zip(parameters, result[1:], strict=True):
            gradients.add(parameter, gradient.reshape(parameter.shape))
        return result[0]


class Fast:
    """The first base of all classes of twins; the plain class is the second."""

    __slots__ = ()
    _twins: Any = ATTACHMENT  # its `Twins`, outside of __dict__

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy or pickle a twin as the layer itself."""
        plain = next(base for base in type(self).__mro__ if not issubclass(base, Fast))
        return object.__new__, (plain,), self.__dict__

    def passes_over(self) -> tuple[Any, ...]:
        """Return the children that do not run because a kernel computes their results."""
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

        The kernel takes x, the values of the parameters, or `values` in their place, and the
        settings. It is chosen for arrays like x, or like `like` if x contains ids.
        """
        kernel = self._twins.kernel(name, x if like is None else like)
        if kernel is None:
            return None
        if values is None:
            values = [None if parameter is None else parameter.value for parameter in parameters]
        y, cache = kernel[0](x, *values, *settings, context=engine_context(context))
        return y, Saved(kernel[1], cache, parameters) if context.keep else None

    def short_kernel(self, name: str, x: Array, context: Context) -> Callable[..., Any] | None:
        """Return a kernel for a few short sequences at evaluation; None if there is none for x.

        The kernel itself returns None if it cannot take an array.
        """
        if context.keep or context.training or context.mask is not None:
            return None
        if x.ndim != 3 or x.shape[1] > LONGEST or not 0 < x.size * x.shape[2] <= PRODUCTS:
            return None
        if engine_context(context).threads > 1:
            return None
        pair = self._twins.kernel(name, x)
        return None if pair is None else pair[0]


class ByKernel(Fast):
    """A layer whose passes may be a kernel's: subclasses define the forward pass, by `run`."""

    __slots__ = ()
    options: Mapping[str, Any] = {}  # of the backward kernel

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Any:
        if type(cache) is not Saved:
            return super().backward(dy, cache, gradients)  # type: ignore[misc]
        return cache.add_gradients(dy, gradients, **self.options)


class Child:
    """An attribute of a twin: the twin of the layer's child of that name, or of each in a list."""

    first = False

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, twin: Any, owner: type | None = None) -> Any:
        if twin is None:
            return self
        try:
            child = twin.__dict__[self.name]
        except KeyError:
            message = f"{type(twin).__name__} has no attribute {self.name!r}"
            raise AttributeError(message) from None
        return None if child is None else twin._twins.twin_of(child, self.first)

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
    """A child with the same input as the layer: if the input is data, it needs no gradient.

    In a list of children, the first one has that input.
    """

    first = True


def is_exactly(layer: Any, layer_class: type) -> bool:
    """Return whether a layer is of exactly this class, and has no passes set on the object."""
    return type(layer) is layer_class and not has_own_pass(layer)


def has_own_pass(layer: Any) -> bool:
    """Return whether a forward or backward pass is set on the object itself."""
    attributes = layer.__dict__
    return "forward" in attributes or "backward" in attributes


class Table:
    """The classes of twins, by the exact class of the layer.

    `first` has separate classes for layers whose input is data, which needs no gradient.
    """

    def __init__(self) -> None:
        self.classes: dict[type, type] = {}
        self.first: dict[type, type] = {}
        self._twin_classes: dict[tuple[type, bool], type | None] = {}

    def add(self, plain: type, fast: type, **first: Any) -> None:
        """Register the class `fast` for twins of layers of exactly the class `plain`.

        `first` are attributes that the twin's class has if the layer's input is data.
        """
        self.classes[plain] = fast
        if first:
            self.first[plain] = _subclass(f"First{plain.__name__}", (fast,), first)
        self._twin_classes.clear()

    def add_container(self, plain: type, *children: str, **first: Any) -> None:
        """Register twins of a container `plain`, with its own passes and fast children.

        `children` are names of layers, or of lists of layers; `first` is as in `add`.
        """
        attributes = {name: Child() for name in children}
        self.add(plain, _subclass(f"Fast{plain.__name__}", (Fast, plain), attributes), **first)

    def find(self, layer_class: type, first: bool = False) -> type | None:
        """Return the class of the twins of layers of this class; None if they have no twins."""
        key = layer_class, first
        try:
            return self._twin_classes[key]
        except KeyError:
            twin_class = self.first.get(layer_class) if first else None
            twin_class = twin_class or self.classes.get(layer_class)
            twin_class = twin_class or self._container(layer_class, first)
            self._twin_classes[key] = twin_class
            return twin_class

    def _container(self, layer_class: type, first: bool) -> type | None:
        """Make a twin class for a user's subclass of a container, such as `Encoder`.

        Return None for another class, or one that overrides a method of the container.
        """
        container = next((base for base in layer_class.__mro__ if base in self.classes), None)
        if container is None:
            return None
        fast = (first and self.first.get(container)) or self.classes[container]
        children = {
            name: type(value)()
            for base in reversed(fast.__mro__)
            for name, value in vars(base).items()
            if isinstance(value, Child)
        }
        # Classes for training, such as `Model`, work the same with a twin.
        subclasses = layer_class.__mro__[: layer_class.__mro__.index(container)]
        other_bases = [
            base
            for base in subclasses
            if not base.__module__.startswith("npformer.models.trainable.")
        ]
        defined = {name for base in other_bases for name in vars(base)}
        layers = [base for base in container.__mro__ if issubclass(base, Layer)]
        names = {name for base in layers for name in vars(base)} | set(children)
        passes = {name for name in names if not _special(name)} - {"arguments"}
        if not children or defined & (passes | NOT_ALLOWED):
            return None
        attributes = {
            "__slots__": (),
            "__module__": layer_class.__module__,
            "__doc__": layer_class.__doc__,
        }
        try:
            metaclass = type(layer_class)
            return metaclass(layer_class.__name__, (Fast, layer_class), attributes | children)
        except TypeError:  # the metaclass takes other arguments
            return None


NOT_ALLOWED = {"__getattribute__", "__getattr__", "__init_subclass__", "__setattr__", "__del__"}
"""Special methods that would notice a twin. Other special methods do not matter in a pass."""


def _subclass(name: str, bases: tuple[type, ...], names: Mapping[str, Any]) -> type:
    return type(name, bases, {"__slots__": (), **names})


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


TABLE = Table()
"""Filled by `fast_linear`, `fast_layers`, `fast_mixers` and `fast_models`."""


@dataclass(eq=False, slots=True)
class ModelCache:
    """Caches that live as long as a model: its twins, a snapshot, and memory.

    They are attached to the model itself, so all are freed together even if it refers to itself.
    """

    twins: dict[tuple[str, bool], Any] = field(default_factory=dict)  # of backend and `of_data`
    snapshot: Any = None  # see `snapshot_of`
    workspaces: list[Any] = field(default_factory=list)  # one list for each simultaneous call

    def release(self) -> None:
        """Drop everything that refers to layers, which may no longer be in the model."""
        self.snapshot = None
        twins, self.twins = self.twins, {}  # in one step, because other threads may read it
        for _, twin in list(twins.values()):
            twin._twins.release()


def model_cache(model: Layer) -> ModelCache:
    """Return the caches of a model; those of a twin are in the `Twins` that it belongs to."""
    attached = attachment(model)
    if type(attached) is ModelCache:
        return attached
    if attached is not None:
        return attached.caches.setdefault(id(model), ModelCache())  # type: ignore[no-any-return]
    cache = ModelCache()
    ATTACHMENT.__set__(model, cache)
    return cache
