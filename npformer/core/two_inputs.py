"""TwoInputLayer: a layer whose result depends on two inputs, such as cross-attention.

Its passes are::

    y, cache = layer.forward(a, b, context)
    da, db = layer.backward(dy, cache, gradients)

Elsewhere inputs, masks and types are one array, or a tuple with an entry for each input.
"""

from typing import Any

from npformer.core import checks
from npformer.core.arrays import backend_of
from npformer.core.backend import Array
from npformer.core.builders import described
from npformer.core.context import Context
from npformer.core.gradients import Gradients
from npformer.core.layer import Layer

Inputs = Any
"""An array, or a tuple with an entry for each input: inputs, masks (or None) or types (or None)."""


class TwoInputLayer(Layer):
    """A function of two inputs, with parameters.

    ``context.padding`` and ``context.types`` belong to the first input, ``context.memory_padding``
    and ``context.memory_types`` to the second.
    """

    n_inputs = 2

    def forward(  # type: ignore[override]
        self, a: Array, b: Array, context: Context
    ) -> tuple[Array, Any]:
        """Return the result and what `backward` needs."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to go forward")

    def backward(
        self, dy: Array, cache: Any, gradients: Gradients
    ) -> tuple[Array | None, Array | None]:
        """Add the gradients of the parameters to `gradients` and return (da, db).

        Either of the two is None if its input has no gradient, as token ids.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to go backward")

    def __call__(  # type: ignore[override]
        self, a: Array, b: Array, mask: tuple[Array | None, Array | None] | None = None
    ) -> Array:
        """Return the result at evaluation. `mask` has a mask or None for each input."""
        check_inputs(self, (a, b), mask)
        y, _ = self.forward(a, b, Context(**context_arguments(self, mask), keep=False))
        return y


def names_of_inputs(layer: Layer) -> tuple[str, ...]:
    """Return what the inputs of a layer are called."""
    return ("a", "b") if layer.n_inputs == 2 else ("x",)


def per_input(layer: Layer, name: str, value: Any) -> tuple[Any, ...]:
    """Return a tuple with an entry for each input of a layer. None alone stands for all of them.

    `name` is what the user calls `value`: inputs, masks or types.
    """
    kind = type(layer).__name__
    if layer.n_inputs == 1:
        if isinstance(value, tuple):
            raise TypeError(
                f"{name} is a tuple of {len(value)}; expected one array, for {kind} has one "
                "input. A layer with two is derived from npformer.TwoInputLayer"
            )
        return (value,)
    if value is None:
        return None, None
    if not isinstance(value, tuple) or len(value) != 2:
        is_tuple = isinstance(value, tuple)
        what = f"a tuple of {len(value)}" if is_tuple else described(value)
        raise TypeError(
            f"{name} is {what}; expected a tuple of 2, for {kind} has two inputs, a and b: "
            f"{name}=(that of a, that of b)"
        )
    return value


def context_arguments(layer: Layer, mask: Any, types: Any = None) -> dict[str, Any]:
    """Return masks and types, an entry for each input of a layer, as arguments of `Context`."""
    masks, of_tokens = per_input(layer, "mask", mask), per_input(layer, "types", types)
    found: dict[str, Any] = {}
    for side, of_mask, of_types in zip(("", "memory_"), masks, of_tokens, strict=False):
        found |= {f"{side}mask": of_mask, f"{side}types": of_types}
    return found


def check_inputs(layer: Layer, x: Any, mask: Any) -> None:
    """Check that inputs are arrays of one backend, and that masks fit them."""
    inputs, masks = per_input(layer, "x", x), per_input(layer, "mask", mask)
    called = [f"mask[{i}]" for i in range(len(masks))] if len(masks) > 1 else ["mask"]
    given = dict(zip(called, masks, strict=True))
    given = {name: each for name, each in given.items() if each is not None}
    backend_of(**dict(zip(names_of_inputs(layer), inputs, strict=True)), **given)
    for name, each, array in zip(called, masks, inputs, strict=True):
        if each is not None:
            checks.mask(name, each, tuple(array.shape[:2]))
