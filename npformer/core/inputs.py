"""Inputs of layers and models: one, or two.

Users give x, mask and types as one array each, or for two inputs as tuples with one entry each.
Inside they are a tuple of `Sequences`. A layer with two inputs has the passes::

    y, cache = layer.forward(a, b, context)
    da, db = layer.backward(dy, cache, gradients)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.arrays import backend_of
from npformer.core.backend import Array
from npformer.core.context import Context
from npformer.core.gradients import Gradients
from npformer.core.layer import Layer
from npformer.core.padding import Padding
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.core.support.wording import a_type, missing_method_error

Inputs = Any
"""An array, or a tuple with an entry for each input: inputs, masks (or None) or types (or None)."""


@dataclass(frozen=True)
class Sequences:
    """One input, for a batch of samples."""

    x: Array  # as the layer takes it: (batch, length), or (batch, length, features)
    padding: Padding | None = None
    types: Array | None = None  # of the tokens: whole numbers, (batch, length)

    @property
    def mask(self) -> Array | None:
        """True = keep; None keeps every token."""
        return None if self.padding is None else self.padding.mask

    @property
    def length(self) -> int:
        """The number of tokens of each sample, padding included."""
        return int(self.x.shape[1]) if self.x.ndim > 1 else 1

    def lengths(self) -> np.ndarray:
        """Return how many tokens each sample needs: up to its last kept one, at least 1."""
        if self.padding is None:
            return np.full(len(self.x), self.length)
        mask = self.padding.on_host()
        last = mask.shape[1] - mask[:, ::-1].argmax(axis=1)
        return np.where(mask.any(axis=1), last, 1)

    def select(self, rows: Any) -> Sequences:
        """Return some samples: a slice, or an array of row numbers."""
        return Sequences(
            x=self.x[rows],
            padding=rows_of(self.padding, rows),
            types=rows_of(self.types, rows),
        )

    def cut(self, length: int) -> Sequences:
        """Return the first tokens of each sample, on the host; without padding, all of them."""
        if self.padding is None or length >= self.length:
            return self
        types = None if self.types is None else self.types[:, :length]
        return Sequences(self.x[:, :length], Padding(self.padding.on_host()[:, :length]), types)


@drop_class_from_names
class TwoInputLayer(Layer):
    """A function of two inputs, with parameters, such as cross-attention.

    ``context.padding`` and ``context.types`` belong to the first input, ``context.memory_padding``
    and ``context.memory_types`` to the second.
    """

    n_inputs = 2

    def forward(  # type: ignore[override]
        self, a: Array, b: Array, context: Context
    ) -> tuple[Array, Any]:
        """Return the result and what `backward` needs."""
        raise missing_method_error(self, "forward(self, a, b, context)")

    def backward(
        self, dy: Array, cache: Any, gradients: Gradients
    ) -> tuple[Array | None, Array | None]:
        """Add the gradients of the parameters to `gradients` and return (da, db).

        Either is None if its input has no gradient, like token ids.
        """
        raise missing_method_error(self, "backward(self, dy, cache, gradients)")

    def __call__(  # type: ignore[override]
        self, a: Array, b: Array, mask: tuple[Array | None, Array | None] | None = None
    ) -> Array:
        """Return the result at evaluation. `mask` has a mask or None for each input."""
        inputs = check_inputs(inputs_of_arrays(self, (a, b), mask))
        return self.forward(a, b, within(inputs, Context(keep=False)))[0]


def rows_of(array: Any, rows: Any) -> Any:
    """Return some rows of an array, or of padding; None for None."""
    return None if array is None else array[rows]


def inputs_of_arrays(
    layer: Layer, x: Any, mask: Any = None, types: Any = None
) -> tuple[Sequences, ...]:
    """Return the inputs of a layer from a user's arrays, which are not checked."""
    if layer.n_inputs == 1 and not any(isinstance(array, tuple) for array in (x, mask, types)):
        return (_sequences(x, mask, types),)  # the usual case
    return tuple(
        _sequences(one_x, one_mask, one_types)
        for one_x, one_mask, one_types in zip(
            _values_by_input(layer, "x", x),
            _values_by_input(layer, "mask", mask),
            _values_by_input(layer, "types", types),
            strict=True,
        )
    )


def _sequences(x: Any, mask: Any, types: Any) -> Sequences:
    """Return one input from a user's arrays."""
    return Sequences(x=x, padding=None if mask is None else Padding(mask), types=types)


def _values_by_input(layer: Layer, name: str, value: Any) -> tuple[Any, ...]:
    """Return what belongs to each input of a layer; None becomes None for each."""
    n = layer.n_inputs
    if value is None:
        return (None,) * n
    entries = value if isinstance(value, tuple) else (value,)
    if len(entries) == n:
        return entries
    what = f"a tuple of {len(value)}" if isinstance(value, tuple) else a_type(value)
    kind = type(layer).__name__
    if n == 2:
        raise TypeError(
            f"{name} is {what}; expected a tuple of 2, because {kind} has two inputs, a and b: "
            f"{name}=(that of a, that of b)"
        )
    raise TypeError(
        f"{name} is {what}; expected one array, because {kind} has one input. A layer with two "
        "has n_inputs = 2"
    )


def check_inputs(inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
    """Return inputs after checking that they are arrays of one backend, and that masks fit."""
    arrays = dict(zip(names_of(inputs), arrays_of(inputs), strict=True))
    mask_names = ["mask"] if len(inputs) == 1 else [f"mask[{k}]" for k in range(len(inputs))]
    masked = {
        name: sequences
        for name, sequences in zip(mask_names, inputs, strict=True)
        if sequences.mask is not None
    }
    backend_of(**arrays, **{name: sequences.mask for name, sequences in masked.items()})
    for name, sequences in masked.items():
        checks.mask(name, sequences.mask, tuple(sequences.x.shape[:2]))
    return inputs


def names_of(inputs: Sequence[Any]) -> tuple[str, ...]:
    """Return what the inputs of a layer are called."""
    return ("x",) if len(inputs) == 1 else ("a", "b")


def arrays_of(inputs: tuple[Sequences, ...]) -> tuple[Array, ...]:
    """Return what a layer takes: an array for each input."""
    return tuple(sequences.x for sequences in inputs)


def user_arrays(inputs: tuple[Sequences, ...]) -> tuple[Any, Any, Any]:
    """Return x, mask and types as users give them."""
    if len(inputs) == 1:
        (sequences,) = inputs
        return sequences.x, sequences.mask, sequences.types
    return (
        arrays_of(inputs),
        tuple(sequences.mask for sequences in inputs),
        tuple(sequences.types for sequences in inputs),
    )


def within(inputs: tuple[Sequences, ...], context: Context) -> Context:
    """Return `context` with the padding and the types of inputs."""
    if all(sequences.padding is None and sequences.types is None for sequences in inputs):
        return context
    first, *second = inputs
    context = replace(context, padding=first.padding, types=first.types)
    for memory in second:
        context = replace(context, memory_padding=memory.padding, memory_types=memory.types)
    return context
