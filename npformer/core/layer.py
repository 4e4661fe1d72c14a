"""State: parameters, their gradients, and the layers that own them.

A layer owns parameters and never activations. What its forward pass computed goes back to the
caller as a cache, and its gradients are added to an object that the caller brings, so the same
layer may be applied twice, shared between places and used from several threads at once::

    y, cache = layer.forward(x, context)
    dx = layer.backward(dy, cache, gradients)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from npformer.core import checks
from npformer.core.arrays import array_module, asarray, backend_of, get_backend
from npformer.core.backend import Array
from npformer.core.context import Context
from npformer.core.gradients import Gradients
from npformer.core.parameters import FlatBuffer, Layout, Parameter, Parameters


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
        get_backend(backend)
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
