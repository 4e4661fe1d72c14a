"""State: parameters, their gradients, and what belongs to one call.

A layer owns parameters and never activations. What its forward pass computed goes back to the
caller as a cache, and its gradients are added to an object that the caller brings, so the same
layer may be applied twice, shared between places and used from several threads at once::

    y, cache = layer.forward(x, context)
    dx = layer.backward(dy, cache, gradients)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from npformer import backend as backends
from npformer import checks
from npformer.backend import Array, array_module, asarray, backend_of, like, to_numpy
from npformer.threads import side_by_side, slices
from npformer.workspace import Workspace

Result = TypeVar("Result")

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

    def __repr__(self) -> str:
        kind = "" if self.trainable else ", constant"
        return f"Parameter{self.shape}, {self.dtype}{kind}"


def _layout(parameters: Mapping[str, Parameter]) -> tuple[list[int], int]:
    """Return the offset of each parameter in a flat buffer, and the buffer's size."""
    offsets, size = [], 0
    for parameter in parameters.values():
        offsets.append(size)
        size += -(-parameter.size // ALIGNMENT) * ALIGNMENT
    return offsets, size


def _shapes(parameters: Mapping[str, Parameter]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, parameter.shape) for name, parameter in parameters.items())


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
        self._named = dict(named)
        self._offsets, self._size = _layout(self._named)
        self.shapes = _shapes(self._named)

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
        buffer = None
        for parameter, offset in zip(self._named.values(), self._offsets, strict=True):
            if buffer is None:
                buffer = parameter._buffer
            if parameter._buffer is not buffer or parameter._offset != offset:
                return None
        return buffer.flat if buffer is not None and buffer.flat.size == self._size else None

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
    layer : Layer
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

    def __init__(self, layer: Layer, zeros: Callable[[int, Any], Array] | None = None) -> None:
        named = layer.trainable()
        offsets, size = _layout(named)
        if named:
            first = next(iter(named.values())).value
            self.flat = (zeros or array_module(first).zeros)(size, first.dtype)
        else:
            self.flat = backends.NUMPY.module.zeros(0, dtype="float32")
        self._named, self._offsets = named, offsets
        self.shapes = _shapes(named)
        self._look()

    def _look(self) -> None:
        """Make the views into `flat`, by name and by identity."""
        self._views: dict[str, Array] = {}
        self._by_identity: dict[int, Array] = {}
        for (name, parameter), offset in zip(self._named.items(), self._offsets, strict=True):
            view = self.flat[offset : offset + parameter.size].reshape(parameter.shape)
            self._views[name] = view
            self._by_identity[id(parameter)] = view

    def copy(self) -> Gradients:
        """Return the same sums in a buffer of their own, for the same parameters."""
        twin = copy.copy(self)
        twin.flat = self.flat.copy()
        twin._look()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Gradients:
        return self.copy()  # views copied one by one would no longer be views

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
        target = self.of(parameter)
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


def check_ends_in_padding(mask: Array) -> None:
    """Check that no row of a mask on the host, (batch, length), keeps a token after padding.

    Raises
    ------
    ValueError
        One does.
    """
    ends_in_padding = (mask[:, 1:] <= mask[:, :-1]).all(axis=1)
    if not ends_in_padding.all():
        row = int((~ends_in_padding).argmax())
        raise ValueError(
            f"mask keeps tokens after padding in row {row}; with padding='per_length' expected "
            "each sequence at the front and its padding at the end. Move the padding behind"
        )


class Lengths:
    """Which rows of a batch have which length: found once, on the host, for all layers of a call.

    Lengths decide what is computed, not only its values. So a mask on a GPU has to be waited for,
    and where the host still has it, that one should be given.

    Parameters
    ----------
    mask : bool array, shape (batch, length)
        True = keep.
    """

    def __init__(self, mask: Array) -> None:
        self._mask = mask
        self._groups: list[tuple[int, Array]] | None = None

    def groups(self, near: Array) -> list[tuple[int, Array]]:
        """Return (length, rows) for every length above 0 that occurs.

        Parameters
        ----------
        near : array
            The rows' numbers are put where it lives, the first time.

        Raises
        ------
        ValueError
            A sequence does not end in its padding.
        """
        if self._groups is None:
            mask = to_numpy(self._mask)
            lengths = mask.sum(axis=1)
            check_ends_in_padding(mask)
            self._groups = [
                (length, like((lengths == length).nonzero()[0], near))
                for length in sorted(set(lengths.tolist()))
                if length > 0
            ]
        return self._groups


@dataclass(frozen=True)
class Context:
    """What belongs to one call and to no layer.

    Attributes
    ----------
    training : bool
        Whether dropout drops.
    generator : numpy.random.Generator or None
        Where dropout's masks come from. Needed only where something is random.
    mask : bool array, shape (batch, length), or None
        Padding: True = keep. None keeps every token.
    workspace : Workspace or None
        Lends the memory that results are written into; None allocates new arrays.
    types : int array, shape (batch, length), or None
        The type of each token, for models with `n_token_types`: BERT counts its segments so. None
        means that every token is of type 0.
    lengths : Lengths or None
        What the mask says of lengths, for all layers together; None: each layer asks the mask.
    keep : bool
        Whether a backward pass may follow. If not, layers need not keep what it would ask for, and
        the caches that they return are of no use.
    plain : bool
        Whether to compute with `npformer.functional` alone, each layer by itself, even where there
        are kernels: to read, to debug, and to look at what is inside.
    threads : int
        How many threads a kernel on the CPU may share its work out to: see `in_parts`.
    """

    training: bool = False
    generator: Any = None
    mask: Array | None = None
    workspace: Workspace | None = None
    types: Array | None = None
    lengths: Lengths | None = None
    keep: bool = True
    plain: bool = False
    threads: int = 1

    def without_mask(self) -> Context:
        """Return the same context for tensors that are no longer sequences."""
        if self.mask is None and self.types is None:
            return self
        return replace(self, mask=None, types=None, lengths=None)

    def draws(self) -> Any:
        """Return the generator for a layer that is random while training, None at evaluation.

        Raises
        ------
        ValueError
            Training without a generator: randomness is passed in, never made up.
        """
        if not self.training:
            return None
        if self.generator is None:
            raise ValueError(
                "dropout needs a random generator while training; got none. Pass a seed, "
                "model.loss_and_gradients(..., seed=0), or, to a layer, "
                "Context(training=True, generator=numpy.random.default_rng(0))"
            )
        return self.generator

    def empty(self, shape: tuple[int, ...], near: Array, dtype: Any = None) -> Array:
        """Return an array to write into, not initialised: from the workspace if there is one.

        Parameters
        ----------
        shape : tuple of int
        near : array
            Gives the backend, and the dtype if that is not given.
        dtype : dtype, optional
        """
        if self.workspace is not None:
            return self.workspace.empty(shape, near, dtype)
        return array_module(near).empty(shape, dtype=near.dtype if dtype is None else dtype)

    def in_parts(self, compute: Callable[[slice], Result], n: int) -> list[Result]:
        """Return what ``compute(part)`` returns for slices that are range(n) together, in order.

        Parameters
        ----------
        compute : callable
            Called side by side in threads, a slice in each, if this call has several; else here,
            for all at once. Parts may not depend on each other.
        n : int
            Rows, heads, columns: whatever the work can be parted by.
        """
        parts = slices(n, self.threads)
        return [compute(parts[0])] if len(parts) == 1 else side_by_side(compute, parts)


EVALUATION = Context(keep=False)
"""No dropout, no padding, no workspace, and no backward pass to follow."""


class Layer:
    """A map with parameters: `forward`, `backward`, and names for what it owns.

    A subclass sets parameters and other layers as attributes, in the order in which they act, and
    writes `forward` and `backward`. Everything else follows from the attributes: a parameter is
    called by the path that leads to it, such as ``blocks.0.mixer.query.weight``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "backward" in vars(cls) and "backward_parameters" not in vars(cls):
            # An inherited one knows nothing of the new `backward`.
            cls.backward_parameters = Layer.backward_parameters  # type: ignore[method-assign]

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

    def backward_parameters(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        """Do as `backward` does, but for the input's gradient.

        For a model's first layer, whose input is data. A layer that saves a product by it writes
        this as well as `backward`; one that does not has the `backward` that it has.

        Parameters
        ----------
        dy, cache, gradients
            As there.
        """
        self.backward(dy, cache, gradients)

    def __call__(self, x: Array, mask: Array | None = None) -> Array:
        """Return the result at evaluation, without a cache.

        Parameters
        ----------
        x : array
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.
        """
        backend_of(x=x, mask=mask)
        y, _ = self.forward(x, EVALUATION if mask is None else replace(EVALUATION, mask=mask))
        return y

    # Names ------------------------------------------------------------------------------------

    def children(self) -> Iterator[tuple[str, Parameter | Layer]]:
        """Yield the parameters and layers that are attributes, in the order they were set."""
        for name, attribute in vars(self).items():
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
        named: dict[str, Parameter] = {}
        seen: set[int] = set()
        for path, layer in self.layers():
            for name, child in layer.children():
                if isinstance(child, Parameter) and id(child) not in seen:
                    seen.add(id(child))
                    named[f"{path}.{name}" if path else name] = child
        return named

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
        offsets, size = _layout(named)
        first = next(iter(named.values())).value
        buffer = FlatBuffer(array_module(first).zeros(size, dtype=first.dtype))
        for parameter, offset in zip(named.values(), offsets, strict=True):
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
        named = self.named_parameters()
        buffers = {id(p._buffer): p._buffer for p in named.values()}
        inside: dict[int, int] = {}
        for parameter in named.values():
            padded = -(-parameter.size // ALIGNMENT) * ALIGNMENT
            inside[id(parameter._buffer)] = inside.get(id(parameter._buffer), 0) + padded
        for key, buffer in buffers.items():
            if buffer.flat.size > inside[key]:
                raise ValueError(
                    f"this {type(self).__name__} is part of a model and shares one buffer with "
                    f"the rest of it; move the whole model: model.to({backend!r})"
                )
        for buffer in buffers.values():
            buffer.flat = asarray(buffer.flat, backend)
        return self

    @property
    def backend(self) -> str:
        """Name of the backend that the parameters live on; ``"numpy"`` if there are none."""
        first = self._any_parameter()
        return "numpy" if first is None else backend_of(parameter=first.value).name

    @property
    def dtype(self) -> str:
        """Name of the parameters' dtype; ``"float32"`` if there are none."""
        first = self._any_parameter()
        return "float32" if first is None else str(first.dtype.name)

    def _any_parameter(self) -> Parameter | None:
        for _, child in self.children():
            found = child if isinstance(child, Parameter) else child._any_parameter()
            if found is not None:
                return found
        return None

    def __repr__(self) -> str:
        described = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if isinstance(value, int | float | str) and not name.startswith("_")
        )
        return f"{type(self).__name__}({described})"
