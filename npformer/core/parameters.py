"""Parameters: named arrays that lie side by side in one flat buffer."""

import math
import weakref
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from npformer.core import checks
from npformer.core.arrays import array_module
from npformer.core.backend import Array
from npformer.core.support.wording import describe

ALIGNMENT = 16
"""Views begin at multiples of this many entries of a flat buffer: 64 bytes in float32."""


class FlatBuffer:
    """One long array that many parameters are views of."""

    def __init__(self, flat: Array) -> None:
        self.flat = flat
        self.members: weakref.WeakSet[Parameter] = weakref.WeakSet()

    def replace(self, flat: Array) -> None:
        """Put another array in the place of this one: that on another backend, for example."""
        self.flat = flat
        for parameter in list(self.members):
            # In its own buffer: since it was placed here, it may have moved to another.
            parameter._place(parameter._buffer, parameter._offset)

    def __getstate__(self) -> dict[str, Any]:
        return {"flat": self.flat}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["flat"])  # type: ignore[misc]


class Parameter:
    """An array that belongs to a layer.

    Parameters
    ----------
    value : array
        Its initial value, which is copied.
    trainable : bool
        False for a constant, such as a table of sinusoids. It is saved and moved with the model but
        has no gradient.

    Attributes
    ----------
    trainable : bool
        Whether it has a gradient: neither `constant` nor frozen.
    constant : bool
        Whether it can never be trained.
    """

    def __init__(self, value: Array, *, trainable: bool = True) -> None:
        checks.floating(value=value)
        self.shape = tuple(value.shape)
        self.size = math.prod(self.shape)
        self.trainable = checks.flag("trainable", trainable)
        self.constant = not trainable
        self._place(FlatBuffer(value.reshape(-1).copy()), 0)

    def _place(self, buffer: FlatBuffer, offset: int) -> None:
        self._buffer = buffer
        self._offset = offset
        self._view: Array = buffer.flat[offset : offset + self.size].reshape(self.shape)
        buffer.members.add(self)

    @property
    def value(self) -> Array:
        """The array itself: a writable view of a flat buffer."""
        return self._view

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self._buffer.flat.dtype

    def __getstate__(self) -> dict[str, Any]:
        # A copied or unpickled view would not be a view, so a new one is made.
        return {**self.__dict__, "_view": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._place(self._buffer, self._offset)

    def __repr__(self) -> str:
        if self.trainable:
            return f"Parameter{self.shape}, {self.dtype}"
        return f"Parameter{self.shape}, {self.dtype}, {'constant' if self.constant else 'frozen'}"


def value_of(parameter: Parameter | None) -> Array | None:
    """Return the array of a parameter; None for one that a layer does without, such as a bias."""
    return None if parameter is None else parameter.value


class Parameters(Mapping[str, Array]):
    """Named arrays of a model: ``{name: array}``, each a writable view.

    After ``model.to("cupy")`` the same mapping holds the arrays on the GPU. In a flat buffer of
    `size` entries they begin at `offsets`; if `shapes`, their names and shapes, are equal, so is
    the layout.
    """

    def __init__(self, named: Mapping[str, Parameter]) -> None:
        fits = isinstance(named, Mapping) and all(isinstance(p, Parameter) for p in named.values())
        if not fits:
            raise TypeError(f"named is {describe(named)}; expected a mapping to Parameter objects")
        self.named = dict(named)
        padded = [-(-p.size // ALIGNMENT) * ALIGNMENT for p in self.named.values()]
        *self.offsets, self.size = accumulate(padded, initial=0)
        self.shapes = tuple((name, parameter.shape) for name, parameter in self.named.items())

    def __getitem__(self, name: str) -> Array:
        return self.named[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)

    def __repr__(self) -> str:
        return "\n".join(["Parameters:", *(f"  {name}: {shape}" for name, shape in self.shapes)])

    def gather(self, arrays: Mapping[str, Array]) -> Array:
        """Return a flat buffer filled from arrays, one for each parameter."""
        first = next(iter(arrays.values()))
        flat = array_module(first).zeros(self.size, dtype=first.dtype)
        for (name, parameter), offset in zip(self.named.items(), self.offsets, strict=True):
            flat[offset : offset + parameter.size] = arrays[name].reshape(-1)
        return flat

    def split(self, flat: Array) -> dict[Parameter, Array]:
        """Return the part of each parameter, a view of its shape, in a buffer of this layout."""
        placed = zip(self.named.values(), self.offsets, strict=True)
        return {p: flat[at : at + p.size].reshape(p.shape) for p, at in placed}

    def overlaps(self, part: slice) -> Iterator[tuple[str, slice, slice]]:
        """Yield each parameter with entries in a part of a buffer: its name and two slices.

        The first selects these entries from the parameter, the second from the part.
        """
        for (name, p), at in zip(self.named.items(), self.offsets, strict=True):
            first, last = max(at, part.start), min(at + p.size, part.stop)
            if first < last:
                within = slice(first - part.start, last - part.start)
                yield name, slice(first - at, last - at), within

    @property
    def flat(self) -> Array | None:
        """The buffer that holds all of these and nothing else; None if there is none."""
        buffers = {parameter._buffer for parameter in self.named.values()}
        if len(buffers) != 1 or [p._offset for p in self.named.values()] != self.offsets:
            return None
        return next((buffer.flat for buffer in buffers if buffer.flat.size == self.size), None)

    @flat.setter
    def flat(self, flat: Array) -> None:
        """Make all parameters views of another buffer of the same layout."""
        if self.flat is None or flat.shape != self.flat.shape:
            has = "several buffers" if self.flat is None else f"one of shape {self.flat.shape}"
            raise ValueError(
                f"flat has shape {flat.shape} and these parameters lie in {has}; expected one "
                "buffer of that shape. Call flatten() on the model first"
            )
        next(iter(self.named.values()))._buffer.replace(flat)
