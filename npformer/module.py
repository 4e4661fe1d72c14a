"""State: parameters, their gradients, and the layers that own them.

A layer owns parameters and never activations. What its forward pass computed goes back to the
caller as a cache, and its gradients are added to an object that the caller brings, so the same
layer may be applied twice, shared between places and used from several threads at once::

    y, cache = layer.forward(x, context)
    dx = layer.backward(dy, cache, gradients)
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Self

from npformer import backend as backends
from npformer import checks
from npformer.backend import Array, array_module, asarray, backend_of
from npformer.context import Context as Context

ALIGNMENT = 16
"""Views in a flat buffer begin at a multiple of this many entries: 64 bytes in float32."""


class FlatBuffer:
    """One long array that many parameters are views of.

    Attributes
    ----------
    flat : array, shape (n,)
        Replaced as a whole when the model moves to another backend.
    """

    def __init__(self, flat: Array) -> None:
        self.flat = flat
        self.members: weakref.WeakSet[Parameter] = weakref.WeakSet()  # that anybody still has

    def __getstate__(self) -> dict[str, Any]:
        return {"flat": self.flat}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["flat"])  # type: ignore[misc]


class Parameter:
    """An array that belongs to a layer.

    Parameters
    ----------
    value : array
        Its initial value. It is copied.
    trainable : bool
        False for a constant that travels with the model, such as a table of sinusoids: it is
        saved and moved to the GPU, but has no gradient.

    Attributes
    ----------
    shape : tuple of int
    size : int
        Number of entries.
    trainable : bool
    """

    def __init__(self, value: Array, *, trainable: bool = True) -> None:
        self.shape = tuple(value.shape)
        self.size = math.prod(self.shape)
        self.trainable = trainable
        self._place(FlatBuffer(value.reshape(-1).copy()), 0)

    def _place(self, buffer: FlatBuffer, offset: int) -> None:
        self._buffer = buffer
        self._offset = offset
        self._view: Array = None
        self._viewed: Array = None
        buffer.members.add(self)

    @property
    def value(self) -> Array:
        """The array itself: a view into a flat buffer, writable in place."""
        flat = self._buffer.flat
        if self._viewed is not flat:  # the buffer moved, or this is the first look
            self._view = flat[self._offset : self._offset + self.size].reshape(self.shape)
            self._viewed = flat
        return self._view

    @property
    def dtype(self) -> Any:
        """Data type of the entries."""
        return self._buffer.flat.dtype

    def __getstate__(self) -> dict[str, Any]:
        # A copied or unpickled view would no longer be a view: it is made again when looked at.
        return {**self.__dict__, "_view": None, "_viewed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._buffer.members.add(self)

    def __repr__(self) -> str:
        kind = "" if self.trainable else ", constant"
        return f"Parameter{self.shape}, {self.dtype}{kind}"


class Layout:
    """Where named parameters lie in one flat buffer.

    Parameters
    ----------
    named : mapping of str to Parameter

    Attributes
    ----------
    named : dict of str to Parameter
    offsets : list of int
        Of each, in order.
    size : int
        Of the buffer.
    shapes : tuple of (str, tuple of int)
        Name and shape of each, in order: where two layouts agree in it, they are one.
    """

    def __init__(self, named: Mapping[str, Parameter]) -> None:
        self.named = dict(named)
        padded = [-(-p.size // ALIGNMENT) * ALIGNMENT for p in self.named.values()]
        *self.offsets, self.size = accumulate(padded, initial=0)
        self.shapes = tuple((name, parameter.shape) for name, parameter in self.named.items())


class Parameters(Mapping[str, Array]):
    """Named arrays of a model: ``{name: array}``, each a writable view.

    The mapping is live: after ``model.to("cupy")`` it shows the arrays on the GPU.

    Attributes
    ----------
    shapes : tuple of (str, tuple of int)
        Name and shape of each, in order: where two mappings agree in it, their buffers are laid
        out alike.
    """

    def __init__(self, named: Mapping[str, Parameter]) -> None:
        layout = Layout(named)
        self._named, self._offsets, self._size = layout.named, layout.offsets, layout.size
        self.shapes = layout.shapes

    def __getitem__(self, name: str) -> Array:
        return self._named[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        lines = [f"  {name}: {parameter.shape}" for name, parameter in self._named.items()]
        return "\n".join(["Parameters:", *lines])

    def gather(self, arrays: Mapping[str, Array]) -> Array:
        """Return named arrays side by side, laid out as `flat` is.

        Parameters
        ----------
        arrays : mapping of str to array
            One for each parameter.
        """
        first = next(iter(arrays.values()))
        flat = array_module(first).zeros(self._size, dtype=first.dtype)
        for (name, parameter), offset in zip(self._named.items(), self._offsets, strict=True):
            flat[offset : offset + parameter.size] = arrays[name].reshape(-1)
        return flat

    @property
    def flat(self) -> Array | None:
        """The one buffer that holds all of these and nothing else; None if there is none."""
        buffers = {parameter._buffer for parameter in self._named.values()}
        buffer = buffers.pop() if len(buffers) == 1 else None
        if buffer is None or [p._offset for p in self._named.values()] != self._offsets:
            return None
        return buffer.flat if buffer.flat.size == self._size else None

    @flat.setter
    def flat(self, flat: Array) -> None:
        """Let all parameters be views of another buffer of the same layout."""
        if self.flat is None or flat.shape != self.flat.shape:
            has = "several buffers" if self.flat is None else f"one of shape {self.flat.shape}"
            raise ValueError(
                f"flat has shape {flat.shape} and these parameters lie in {has}; expected one "
                "buffer of that shape. Call flatten() on the model first"
            )
        next(iter(self._named.values()))._buffer.flat = flat


class Gradients(Mapping[str, Array]):
    """Sums of gradients, one for each trainable parameter of a layer: ``{name: array}``.

    They belong to whoever made them. A layer *adds* to them under the parameter's identity, so a
    parameter that is used in two places collects both.

    Parameters
    ----------
    layer : Layer or Layout
        Whose parameters these are the gradients of. All begin at 0.
    zeros : callable, optional
        ``zeros(size, dtype)`` makes the buffer, filled with zeros, instead of the backend.

    Attributes
    ----------
    flat : array, shape (n,)
        All gradients in one buffer, laid out as the parameters are.
    shapes : tuple of (str, tuple of int)
        As in `Parameters`.
    """

    def __init__(
        self, layer: Layer | Layout, zeros: Callable[[int, Any], Array] | None = None
    ) -> None:
        layout = layer if isinstance(layer, Layout) else Layout(layer.trainable())
        if layout.named:
            first = next(iter(layout.named.values())).value
            self.flat = (zeros or array_module(first).zeros)(layout.size, first.dtype)
        else:
            self.flat = backends.NUMPY.module.zeros(0, dtype="float32")
        self._named, self._offsets, self.shapes = layout.named, layout.offsets, layout.shapes
        self._look()

    def _look(self) -> None:
        """Make the views into `flat`, by name and by identity."""
        placed = zip(self._named.values(), self._offsets, strict=True)
        views = [self.flat[start : start + p.size].reshape(p.shape) for p, start in placed]
        self._views = dict(zip(self._named, views, strict=True))
        self._by_identity = dict(zip(map(id, self._named.values()), views, strict=True))

    def copy(self) -> Gradients:
        """Return the same sums in a buffer of their own, for the same parameters."""
        twin = copy.copy(self)
        twin.flat = self.flat.copy()
        twin._look()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Gradients:
        return self.copy()  # views copied one by one would no longer be views

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_views": None, "_by_identity": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._look()

    def add(self, parameter: Parameter, gradient: Array) -> None:
        """Add to the gradient of one parameter.

        Parameters
        ----------
        parameter : Parameter
            One of the layer's. A constant is passed over.
        gradient : array
            In the parameter's shape.

        Raises
        ------
        KeyError
            The parameter is not one of this layer's.
        """
        if not parameter.trainable:
            return
        target = self._by_identity.get(id(parameter))
        if target is None:
            target = self.of(parameter)  # says what is wrong
        if gradient.shape != parameter.shape:
            raise ValueError(
                f"a gradient of shape {tuple(gradient.shape)} for a parameter of shape "
                f"{parameter.shape}; expected the same. Nothing is broadcast here"
            )
        target += gradient

    def of(self, parameter: Parameter) -> Array:
        """Return the sum so far for one parameter: a writable view.

        Parameters
        ----------
        parameter : Parameter
            One of the layer's that is trained.

        Raises
        ------
        KeyError
            It is not.
        """
        if id(parameter) not in self._by_identity:
            raise KeyError(
                f"these gradients have no place for a parameter of shape {parameter.shape}: they "
                "were made for another layer. Make them with Gradients(layer), for the layer, or "
                "the model around it, that you call backward on"
            )
        return self._by_identity[id(parameter)]

    def zero(self) -> None:
        """Set every gradient to 0, in place."""
        self.flat[...] = 0.0

    def __getitem__(self, name: str) -> Array:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        lines = [f"  {name}: {view.shape}" for name, view in self._views.items()]
        return "\n".join(["Gradients:", *lines])


class Layer:
    """A map with parameters: `forward`, `backward`, and names for what it owns.

    A subclass sets parameters and other layers as attributes, in the order in which they act, and
    writes `forward` and `backward`. Everything else follows from the attributes: a parameter is
    called by the path that leads to it, such as ``blocks.0.mixer.query.weight``.
    """

    # What the engine keeps of a layer while it lives, beside its attributes: no copy has it and no
    # file, and no table keeps the layer alive.
    __slots__ = ("__dict__", "__weakref__", "_npformer_kept")

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if not isinstance(state, tuple):
            return state
        attributes, slots = state
        slots.pop("_npformer_kept", None)
        return (attributes, slots) if slots else attributes

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the result and what `backward` needs.

        Parameters
        ----------
        x : array
        context : Context

        Returns
        -------
        y : array
        cache : opaque
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to go forward")

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Add the parameters' gradients to `gradients` and return the input's.

        Parameters
        ----------
        dy : array
            Gradient of the loss with respect to y.
        cache : opaque
            From `forward`.
        gradients : Gradients
            Added to, under each parameter's identity.

        Returns
        -------
        dx : array
            Gradient of the loss with respect to x; None where x has none: token ids, or tokens
            that have no say in the result.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to go backward")

    def __call__(self, x: Array, mask: Array | None = None) -> Array:
        """Return the result at evaluation, without a cache.

        Parameters
        ----------
        x : array
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.
        """
        backend_of(x=x, mask=mask)
        y, _ = self.forward(x, Context(mask=mask, keep=False))
        return y

    # Names ------------------------------------------------------------------------------------

    def children(self) -> Iterator[tuple[str, Parameter | Layer]]:
        """Yield the parameters and layers that are attributes, in the order they were set."""
        for name, attribute in list(vars(self).items()):  # another thread may set one meanwhile
            if isinstance(attribute, Parameter | Layer):
                yield name, attribute
            elif isinstance(attribute, list | tuple):
                for i, item in enumerate(attribute):
                    if isinstance(item, Parameter | Layer):
                        yield f"{name}.{i}", item

    def layers(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """Yield this layer and all below it with their dotted names; a shared one each time."""
        yield prefix, self
        for name, child in self.children():
            if isinstance(child, Layer):
                yield from child.layers(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> dict[str, Parameter]:
        """Return every parameter under its dotted name; a shared one once, under its first."""
        names: dict[Parameter, str] = {}
        for path, layer in self.layers():
            for name, child in layer.children():
                if isinstance(child, Parameter):
                    names.setdefault(child, f"{path}.{name}" if path else name)
        return {name: parameter for parameter, name in names.items()}

    def trainable(self) -> dict[str, Parameter]:
        """Return the parameters that are trained, under their dotted names."""
        return {n: p for n, p in self.named_parameters().items() if p.trainable}

    def parameters(self) -> Parameters:
        """Return ``{name: array}`` of what is trained: writable views, live across `to`."""
        return Parameters(self.trainable())

    def n_parameters(self) -> int:
        """Return how many numbers are trained."""
        return sum(parameter.size for parameter in self.trainable().values())

    # Memory -----------------------------------------------------------------------------------

    def flatten(self) -> Self:
        """Lay all trained parameters out as views of one flat buffer.

        One buffer is one update of the optimizer, one sum over workers, one move to the GPU. The
        outermost layer does it: a model calls this at the end of its ``__init__``.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            Parameters have more than one dtype.
        """
        named = self.trainable()
        if not named:
            return self
        checks.floating(**{name: parameter.value for name, parameter in named.items()})
        layout = Layout(named)
        first = next(iter(named.values())).value
        buffer = FlatBuffer(array_module(first).zeros(layout.size, dtype=first.dtype))
        for parameter, offset in zip(named.values(), layout.offsets, strict=True):
            buffer.flat[offset : offset + parameter.size] = parameter.value.reshape(-1)
            parameter._place(buffer, offset)
        return self

    def to(self, backend: str) -> Self:
        """Move all parameters to a backend: ``"cupy"`` for the GPU, ``"numpy"`` back.

        Parameters
        ----------
        backend : str
            A name in `npformer.backends()`.

        Returns
        -------
        self

        Raises
        ------
        BackendUnavailableError
            No GPU, no driver or no CuPy; the message says which.
        ValueError
            This layer shares its memory with a model around it, which must move as a whole.
        """
        backends.get_backend(backend)
        ours = set(self.named_parameters().values())
        buffers = {id(parameter._buffer): parameter._buffer for parameter in ours}
        forget(self)  # layers that were taken out may live on in what is kept of this one
        for buffer in buffers.values():
            if not ours.issuperset(buffer.members):
                raise ValueError(
                    f"this {type(self).__name__} is part of a model and shares one buffer with "
                    f"the rest of it; move the whole model: model.to({backend!r}). If it is the "
                    "model, and you have kept a layer that you took out of it, call flatten() first"
                )
        for buffer in buffers.values():
            buffer.flat = asarray(buffer.flat, backend)
        return self

    @property
    def backend(self) -> str:
        """Name of the backend that the parameters live on; ``"numpy"`` if there are none."""
        first = self._any_parameter()
        return "numpy" if first is None else backend_of(parameter=first._buffer.flat).name

    @property
    def dtype(self) -> str:
        """Name of the parameters' dtype; ``"float32"`` if there are none."""
        first = self._any_parameter()
        return "float32" if first is None else str(first.dtype.name)

    def _any_parameter(self) -> Parameter | None:
        every = (child for _, layer in self.layers() for _, child in layer.children())
        return next((child for child in every if isinstance(child, Parameter)), None)

    def __repr__(self) -> str:
        described = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if isinstance(value, int | float | str) and not name.startswith("_")
        )
        return f"{type(self).__name__}({described})"


def forget(layer: Layer) -> None:
    """Let go of what is kept beside a layer."""
    try:
        kept = KEPT.__get__(layer)
    except AttributeError:
        return
    if kept is not None:
        kept.release()


KEPT: Any = vars(Layer)["_npformer_kept"]
"""The place beside a layer, which no ``__getattr__`` or ``__setattr__`` of a subclass sees."""
