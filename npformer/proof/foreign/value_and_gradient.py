"""A function that returns (loss, gradient), or a method of a model that does.

The gradient is one array, a tuple or list in the order of the arguments, or a dictionary by names.
A method's object may hold parameters, with their gradients in that dictionary.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import describe
from npformer.proof.foreign.arrays_inside import (
    all_paths,
    arrays_inside,
    convert_to_float64,
    numbers_inside,
    read,
    write,
)
from npformer.proof.foreign.gradient_names import looks_trained, match_gradients
from npformer.proof.foreign.gradient_places import (
    changes_with_a_step,
    read_returned,
    returned_arrays,
)
from npformer.proof.foreign.repeatable import repeatable_draws
from npformer.proof.foreign.returned_names import (
    match_names,
    names_of_gradients,
    trained_globals,
)
from npformer.proof.foreign.stateful import copy_object
from npformer.proof.pair_names import GRADIENT_OF_OUTPUT
from npformer.proof.pairs import Call, copy_generators, name_of
from npformer.proof.problem import Convert, Problem, is_ids_or_mask
from npformer.proof.rules import move

METHOD_NAMES = (
    "loss_and_gradients",
    "loss_and_gradient",
    "loss_and_grads",
    "loss_and_grad",
    "value_and_grad",
    "forward_backward",
    "loss",
    "compute_loss",
    "cost",
)
"""Methods of a model that may return (loss, gradients)."""


def loss_method(obj: Any) -> Any:
    """Return the method of an object that may return its loss and gradients, or None."""
    methods = (getattr(obj, name, None) for name in METHOD_NAMES)
    return next((method for method in methods if callable(method)), None)


@dataclass
class ValueAndGradient:
    """A function that returns (loss, gradient), and its arguments."""

    function: Any
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    seed: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.title = name_of(self.function)
        owner = getattr(self.function, "__self__", None)
        self.names = names_of_gradients(self.function)
        self.base = None if owner is None else copy_object(owner)
        self.globals = trained_globals(self.function, self.names)
        if self.base is not None:
            self.title = f"{type(owner).__name__}.{self.title}"
            converted = convert_to_float64(self.base)
            if converted:
                self.notes.append(f"checked on a copy with {', '.join(converted)} in float64")
        self.call = Call(self.function, self.inputs, self.options)
        self.arguments = copy.deepcopy(self.call.values)
        convert_to_float64(self.arguments)
        self._hold_trained_numbers()

    def _hold_trained_numbers(self) -> None:
        """Replace numbers among the arguments whose gradients are returned by arrays."""
        numbers = numbers_inside(self.arguments)
        by_argument = {name: numbers.get(f"[{name!r}]") for name in self.arguments}
        held = {name: number for name, number in by_argument.items() if number is not None}
        if not held:
            return
        _, gradient = self.run(*self.copies())
        by_key = numbers_by_key(gradient)
        for name in match_names(held, self.names) | match_gradients(held, by_key, exact=True):
            self.arguments[name] = held[name]

    def copies(self) -> tuple[Any, dict[str, Any]]:
        """Return copies of the object, or of the arrays that are global, and of the arguments."""
        base = copy_object(self.globals if self.base is None else self.base)
        return base, copy.deepcopy(self.arguments)

    def run(self, base: Any, arguments: dict[str, Any]) -> tuple[float, Any]:
        """Return the loss and the gradient."""
        function = self.function
        if self.base is not None:
            function = getattr(base, self.function.__name__)
        new_globals = base if self.base is None else {}
        with repeatable_draws(self.seed), _globals_set(self.function, new_globals):
            result = self.call.run(copy_generators(arguments), function)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], dict):
            result = result[::-1]  # (gradients, loss)
        if not is_value_and_gradient(result):
            name = name_of(self.function)
            raise TypeError(
                f"{name} has no {name}_backward in its module, and returned {describe(result)}; "
                "expected a pair, gradcheck((forward, backward), x), a function that returns "
                "(loss, gradient), or an object with forward and backward"
            )
        return float(result[0]), result[1] if len(result) == 2 else tuple(result[1:])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays of floats in the arguments and in the object."""
        arrays: dict[str, np.ndarray] = {}
        for name, value in self.arguments.items():
            arrays |= arrays_inside(value, within=name)
        if self.base is not None:
            arrays |= arrays_inside(self.base, within="self")
        return arrays | self.globals


@contextmanager
def _globals_set(function: Any, values: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Set global arrays that a function reads inside a `with` block, and restore them."""
    if not values:
        yield
        return
    originals = {name: function.__globals__[name] for name in values}
    function.__globals__.update(values)
    try:
        yield
    finally:
        function.__globals__.update(originals)


def numbers_by_key(gradient: Any) -> dict[str, np.ndarray]:
    """Return the numbers in a dictionary of gradients, by their places."""
    numbers = numbers_inside(gradient, within="return")
    return {place: number for place, number in numbers.items() if place.endswith("']")}


def is_value_and_gradient(result: Any) -> bool:
    """Whether a function returned a number, and then something with arrays."""
    if not isinstance(result, tuple) or len(result) < 2:
        return False
    value, *gradients = result
    is_number = isinstance(value, (int, float, np.number))
    is_array_of_one = isinstance(value, np.ndarray) and value.size == 1
    return (is_number or is_array_of_one) and bool(all_paths(gradients))


def value_and_gradient_problem(
    target: ValueAndGradient, params: Mapping[str, str] | None, wrt: Sequence[str] | None
) -> tuple[Problem, list[str]]:
    """Return such a function as a function of arrays, and the names of those without gradient.

    A parameter by its name that the loss depends on is checked even if it has no gradient.
    """
    _, gradient = target.run(*target.copies())
    places: dict[str, str | None] = {**_find_places(target, gradient, params)}
    if wrt is not None:
        places = {name: place for name, place in places.items() if name in wrt}
    constants = []
    for name in target.arrays():
        if name not in places and params is None and wrt is None and _depends_on(target, name):
            if looks_trained(name):
                places[name] = None
            else:
                constants.append(name)
    return _problem(target, places, None), constants


def _depends_on(target: ValueAndGradient, name: str) -> bool:
    """Whether the loss changes when an array does."""
    array = target.arrays()[name]

    def loss(step: float) -> float:
        base, arguments = target.copies()
        _set_array(base, arguments, name, array + step * (move(array) + 0.01))
        return target.run(base, arguments)[0]

    return changes_with_a_step(loss)


def _problem(
    target: ValueAndGradient, places: Mapping[str, str | None], convert: Convert | None
) -> Problem:
    new_copy = convert or np.array
    originals = target.arrays()
    arrays = {name: new_copy(originals[name]) for name in places}

    def forward() -> tuple[Any, Any]:
        base, arguments = target.copies()
        for name, array in arrays.items():
            _set_array(base, arguments, name, array)
        loss, gradient = target.run(base, arguments)
        return np.asarray(loss), gradient

    def backward(dy: Any, cache: Any, start: float = 0.0) -> dict[str, Any]:
        gradients = {}
        for name, place in places.items():
            if place is None:
                continue
            gradient = np.array(read_returned(cache, place))
            shape = arrays[name].shape
            same_size = gradient.size == arrays[name].size and gradient.ndim != len(shape)
            gradients[name] = gradient.reshape(shape) if same_size else gradient
        return gradients

    def convert_arrays(
        convert: Convert, other_ids: bool = False
    ) -> AbstractContextManager[Problem]:
        return nullcontext(_problem(target, places, convert))

    return Problem(
        title=target.title,
        forward=forward,
        backward=backward,
        arrays=arrays,
        inputs=[name for name in arrays if not name.startswith("self.")][:1],
        constants=[x for x in target.arguments.values() if is_ids_or_mask(x)],
        convert_arrays=convert_arrays,
        unit_dy=True,
    )


def _set_array(base: Any, arguments: dict[str, Any], name: str, value: np.ndarray) -> None:
    """Put an array into the object, the arguments, or a list or dictionary among them."""
    if name.startswith("self.") and not isinstance(base, dict):
        read(base, name.removeprefix("self."))[...] = value
        return
    value = value.copy()
    if name in arguments:
        arguments[name] = value
        return
    if isinstance(base, dict) and name in base:
        base[name] = value
        return
    argument = next(a for a in arguments if name.startswith((f"{a}[", f"{a}.")))
    write(arguments[argument], name.removeprefix(argument).removeprefix("."), value)


def _find_places(
    target: ValueAndGradient, gradient: Any, params: Mapping[str, str] | None
) -> dict[str, str]:
    """Return where the gradient of each array is; what has none is a constant."""
    arrays = target.arrays()
    if params is not None:
        return {_full_name(name, arrays): place for name, place in params.items()}
    return _match_returned(target, arrays, returned_arrays(gradient) | numbers_by_key(gradient))


def _match_returned(
    target: ValueAndGradient,
    arrays: Mapping[str, np.ndarray],
    returned: Mapping[str, np.ndarray],
) -> dict[str, str]:
    """Return the place of each gradient: by its key, by its name in the source, or in order."""
    by_key = {place: array for place, array in returned.items() if place.endswith("']")}
    by_name = match_names(arrays, target.names)
    places = match_gradients(arrays, by_key) | by_name
    settled = {*by_key, *by_name.values()}
    in_order = {place: array for place, array in returned.items() if place not in settled}
    if by_name:  # then what has no name, or not that of a gradient, is none: a state, a score
        gradients = {p for p, name in target.names.items() if GRADIENT_OF_OUTPUT.search(name)}
        in_order = {place: array for place, array in in_order.items() if place in gradients}
    rest = {name: array for name, array in arrays.items() if name not in places}
    return places | _assign_in_order(rest, in_order)


def _assign_in_order(
    arrays: Mapping[str, np.ndarray], returned: Mapping[str, np.ndarray]
) -> dict[str, str]:
    """Return a place for each array: the first one left of its shape, or a single one."""
    places: dict[str, str] = {}
    for place, gradient in returned.items():
        rest = [name for name in arrays if name not in places]
        fitting = [name for name in rest if arrays[name].shape == gradient.shape]
        candidates = rest if len(returned) == 1 and not fitting else fitting
        for name in candidates[:1]:
            places[name] = place
    return places


def _full_name(name: str, arrays: Mapping[str, np.ndarray]) -> str:
    for candidate in (name, f"self.{name}"):
        if candidate in arrays:
            return candidate
    raise ValueError(f"params names {name!r}; expected some of {', '.join(arrays)}")
