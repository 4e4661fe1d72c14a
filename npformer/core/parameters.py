"""Parameters: named arrays that lie side by side in one flat buffer."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from npformer.core.arrays import array_module
from npformer.core.backend import Array

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
