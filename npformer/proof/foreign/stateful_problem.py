"""An object with state, as gradcheck sees it: a function of its inputs and parameters.

Each forward pass runs on a copy of the object, which is then its cache; each backward pass runs on
a copy of that. So nothing that the object keeps, adds up or overwrites disturbs the comparison of
its gradients with differences. What it does to its state is told apart, in `protocol`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from npformer.proof.foreign.arrays_inside import all_paths, arrays_inside, read, write
from npformer.proof.foreign.gradient_places import (
    GradientPlaces,
    copy_arrays_of,
    find_places,
    read_place,
)
from npformer.proof.foreign.stateful import ForwardRun, StatefulObject, copy_object
from npformer.proof.problem import Convert, Problem, copy_arrays, is_ids_or_mask


def stateful_problem(
    obj: StatefulObject, params: Mapping[str, str] | None, wrt: Sequence[str] | None
) -> tuple[Problem, GradientPlaces]:
    """Return an object as a function of arrays, and where its gradients are."""
    _, floats = copy_arrays(obj.call.values.items(), None)
    places = find_places(obj, floats, params)
    return _ObjectOnCopies(obj, places, wrt).problem(), places


class _ObjectOnCopies:
    """The passes of an object as functions of arrays, which may be moved or converted."""

    def __init__(
        self,
        obj: StatefulObject,
        places: GradientPlaces,
        wrt: Sequence[str] | None,
        convert: Convert | None = None,
        other_ids: bool = False,
    ) -> None:
        self.obj = obj
        self.places = places
        self.wrt = wrt
        self.values, _ = copy_arrays(obj.call.values.items(), convert, other_ids)
        self.paths = {_name_unlike(path, self.values): path for path in places.parameters}
        inside = arrays_inside(obj.base)
        new_copy = convert or np.array
        self.parameters = {name: new_copy(inside[path]) for name, path in self.paths.items()}

    def forward(self) -> tuple[Any, ForwardRun]:
        """Run the forward pass on a copy of the object with the present values."""
        instance = copy_object(self.obj.base)
        for name, path in self.paths.items():
            _set_tied(instance, path, self.parameters[name])
        run = self.obj.forward(instance, copy_arrays_of(self.values))
        return np.array(run.y), run

    def backward(self, dy: Any, cache: ForwardRun, start: float = 0.0) -> dict[str, Any]:
        """Run the backward pass on a copy of the object after its forward pass."""
        run = self.obj.backward(copy_object(cache), dy)
        gradients = {
            name: _fit(read_place(run, place), self.values[name])
            for name, place in self.places.of_inputs.items()
        }
        for name, path in self.paths.items():
            if path in self.places.from_updates:
                gradients[name] = run.before[path] - read(run.instance, path)
            elif path in self.places.of_parameters:
                gradient = read_place(run, self.places.of_parameters[path])
                gradients[name] = _fit(gradient, self.parameters[name])
        return gradients

    def convert_arrays(
        self, convert: Convert, other_ids: bool = False
    ) -> AbstractContextManager[Problem]:
        converted = _ObjectOnCopies(self.obj, self.places, self.wrt, convert, other_ids)
        return nullcontext(converted.problem())

    def problem(self) -> Problem:
        """Return the problem that gradcheck checks."""
        inputs = {name: self.values[name] for name in self.places.of_inputs}
        arrays = inputs | self.parameters
        if self.wrt is not None:
            arrays = {name: array for name, array in arrays.items() if name in self.wrt}
        return Problem(
            title=self.obj.title,
            forward=self.forward,
            backward=self.backward,
            arrays=arrays,
            inputs=list(inputs),
            constants=[x for x in self.values.values() if is_ids_or_mask(x)],
            convert_arrays=self.convert_arrays,
            unit_dy=not self.obj.backward_call.dy_name,
        )


def _name_unlike(path: str, inputs: Mapping[str, Any]) -> str:
    """Return a path, or a name for it that no input has."""
    return f"self.{path}" if path in inputs else path


def _set_tied(instance: Any, path: str, value: np.ndarray) -> None:
    """Set an array inside an object in place, so that others that are tied to it follow."""
    array = read(instance, path)
    try:
        array[...] = value
    except ValueError:  # read-only
        original = array
        for other, tied in all_paths(instance).items():
            if tied is original:
                write(instance, other, value.copy())


def _fit(gradient: Any, array: np.ndarray) -> Any:
    """Return a gradient in the shape of its array, if they differ by sizes of 1 alone."""
    if gradient is None:
        return None
    gradient = np.asarray(gradient)
    sizes = [size for size in gradient.shape if size != 1]
    if sizes == [size for size in array.shape if size != 1]:
        return gradient.reshape(array.shape)
    return gradient
