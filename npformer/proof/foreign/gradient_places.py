"""Find where an object has the gradients of its inputs and parameters after a backward pass.

A place is a path in the object, or in what its backward pass returned: ``dW``, ``grads['W']``,
``return``, ``return[1]``, ``return['dx']``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from npformer.core.support.wording import did_you_mean
from npformer.proof.foreign.accessors import accessor_places
from npformer.proof.foreign.arrays_inside import (
    all_paths,
    arrays_inside,
    changed_arrays,
    numbers_inside,
    read,
    write,
)
from npformer.proof.foreign.gradient_names import (
    is_among_gradients,
    looks_trained,
    match_gradients,
)
from npformer.proof.foreign.stateful import BackwardRun, StatefulObject, copy_object
from npformer.proof.foreign.trained_numbers import changed_numbers, hold_trained_numbers
from npformer.proof.pair_names import looks_like_target
from npformer.proof.rules import move

RETURNED = "return"
"""The first step of a place in what a backward pass returned."""


@dataclass
class GradientPlaces:
    """Where gradients are, by the names of inputs and the paths of parameters."""

    of_inputs: dict[str, str] = field(default_factory=dict)
    of_parameters: dict[str, str] = field(default_factory=dict)
    from_updates: list[str] = field(default_factory=list)  # updated by the backward pass itself
    missing: list[str] = field(default_factory=list)  # trained by their names, but without gradient
    constants: list[str] = field(default_factory=list)  # y depends on them; they have no gradient
    unnamed: list[str] = field(default_factory=list)  # y depends on them; the user names others
    unmatched: dict[str, np.ndarray] = field(default_factory=dict)  # of backward, with no use found

    @property
    def parameters(self) -> list[str]:
        """The paths of all parameters that are checked."""
        return [*self.of_parameters, *self.from_updates, *self.missing]


def read_place(run: BackwardRun, place: str) -> Any:
    """Return the gradient at a place after a backward pass; None if nothing is there."""
    try:
        if place == RETURNED or place.startswith((f"{RETURNED}[", f"{RETURNED}.")):
            return read_returned(run.returned, place)
        return read(run.instance, place)
    except LookupError:
        return None


def find_places(
    obj: StatefulObject, floats: Sequence[str], params: Mapping[str, str] | None
) -> GradientPlaces:
    """Run both passes once and find all gradients.

    `floats` are the names of the inputs that are arrays of floats; `params` has the paths of
    parameters and the places of their gradients, if the user says so.
    """
    first_run = run_once(obj)
    returned_numbers = numbers_inside(first_run.returned, within=RETURNED)
    trained_numbers = hold_trained_numbers(obj, first_run, returned_numbers, params, _depends_on)
    run = run_once(obj) if trained_numbers else first_run
    unassigned = returned_arrays(run.returned)
    if trained_numbers:
        unassigned |= returned_numbers
    places = GradientPlaces()
    places.of_inputs = _find_inputs(obj, run, floats, unassigned)
    for place in places.of_inputs.values():
        unassigned.pop(place, None)
    if params is not None:
        places.of_parameters = _check_params(obj, run, params)
        places.unnamed = _find_unnamed(obj, params)
        return places
    _find_parameters(places, obj, run, unassigned)
    return places


def run_once(obj: StatefulObject) -> BackwardRun:
    """Run both passes on a copy, for a dy without zeros and without equal entries."""
    forward_run = obj.forward(copy_object(obj.base), copy_arrays_of(obj.call.values))
    y = np.asarray(forward_run.y)
    dy = np.asarray(1.0 + 0.1 * np.sin(np.arange(y.size))).reshape(y.shape)
    numbers_before = numbers_inside(forward_run.instance)
    run = obj.backward(forward_run, dy.astype(y.dtype))
    return replace(run, numbers_before=numbers_before)


def copy_arrays_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with copies of the arrays among them."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def returned_arrays(returned: Any) -> dict[str, np.ndarray]:
    """Return all arrays of floats that were returned, by their places."""
    if isinstance(returned, (float, np.floating)):
        returned = np.asarray(returned)
    return all_paths(returned, within=RETURNED)


def read_returned(returned: Any, place: str) -> Any:
    """Return what is at a place in what was returned. Raises LookupError if there is nothing."""
    return read(returned, place.removeprefix(RETURNED).removeprefix("."))


def _find_inputs(
    obj: StatefulObject,
    run: BackwardRun,
    floats: Sequence[str],
    returned: Mapping[str, np.ndarray],
) -> dict[str, str]:
    """Return where the gradients of inputs are: returned by name or in order, or kept."""
    values = {name: obj.call.values[name] for name in floats}
    by_key = {place: array for place, array in returned.items() if place.endswith("']")}
    places = match_gradients(values, by_key)
    nameless = sorted((name for name in floats if name not in places), key=looks_like_target)
    in_order = [place for place in returned if place not in by_key]
    for name, place in zip(nameless, in_order, strict=False):
        if len(floats) == 1 or returned[place].shape == values[name].shape:
            places[name] = place
    rest = {name: values[name] for name in nameless if name not in places}
    return places | _find_kept_inputs(rest, run, places)


def _find_kept_inputs(
    values: Mapping[str, np.ndarray], run: BackwardRun, returned: Mapping[str, str]
) -> dict[str, str]:
    """Return where an object keeps the gradients of inputs that were not returned.

    The first input may be called otherwise: ``dinputs`` of a loss is that of its predictions.
    """
    written = changed_arrays(run.instance, run.before)
    places = match_gradients(values, written)
    first_name = next(iter(values), None)
    if returned or first_name is None or first_name in places:
        return places
    inputs = {"inputs": values[first_name]}
    by_synonym = match_gradients(inputs, written, taken=places.values())
    if by_synonym:
        places[first_name] = by_synonym["inputs"]
    return places


def _find_parameters(
    places: GradientPlaces,
    obj: StatefulObject,
    run: BackwardRun,
    unassigned: dict[str, np.ndarray],
) -> None:
    """Find the gradients of all arrays that y depends on, and say which have none."""
    arrays = _arrays_beside_gradients(obj)
    written = changed_arrays(run.instance, run.before)
    if any(array.ndim == 0 for array in arrays.values()):
        written |= changed_numbers(run)
    after = all_paths(run.instance) | written
    if obj.backward_call.takes_rate:
        places.from_updates = [path for path in arrays if path in written]
    handed_out = accessor_places(obj.base, run.instance)
    rest_of_arrays = _without(arrays, handed_out)
    by_name = handed_out | _match_by_name(rest_of_arrays, after, written, unassigned)
    gradients = {*by_name.values()}
    if obj.has_rate:
        places.from_updates += _find_stepped(obj, _without(arrays, {*by_name, *gradients}), written)
    rest = _without(unassigned, gradients)
    nameless = _nameless_parameters(places, obj, arrays, by_name)
    in_order = _assign_in_order(nameless, arrays, rest)
    for path in arrays:
        place = by_name.get(path) or in_order.get(path)
        if place is not None and path not in places.from_updates:
            places.of_parameters[path] = place
    _sort_by_name(places, [path for path in nameless if path not in in_order])
    settled = {*arrays, *places.of_inputs.values(), *places.of_parameters.values()}
    places.unmatched = _without({**written, **rest}, settled)


def _find_stepped(
    obj: StatefulObject, arrays: Collection[str], written: Collection[str]
) -> list[str]:
    """Return the arrays that y depends on and that the backward pass changes."""
    return [path for path in arrays if path in written and _depends_on(obj, path)]


def _arrays_beside_gradients(obj: StatefulObject) -> dict[str, np.ndarray]:
    """Return the arrays inside an object, without those in what is called gradients."""
    arrays = arrays_inside(obj.base)
    return {path: array for path, array in arrays.items() if not is_among_gradients(path)}


def _without(arrays: Mapping[str, np.ndarray], paths: Collection[str]) -> dict[str, np.ndarray]:
    """Return the arrays whose paths are not among some."""
    return {path: array for path, array in arrays.items() if path not in paths}


def _find_unnamed(obj: StatefulObject, params: Mapping[str, str]) -> list[str]:
    """Return the arrays that y depends on and that the user does not name."""
    settled = {*params, *params.values()}
    paths = arrays_inside(obj.base)
    return [path for path in paths if path not in settled and _depends_on(obj, path)]


def _nameless_parameters(
    places: GradientPlaces,
    obj: StatefulObject,
    arrays: Mapping[str, np.ndarray],
    by_name: Mapping[str, str],
) -> list[str]:
    """Return the arrays that y depends on and that have no gradient by its name."""
    settled = {*by_name, *by_name.values(), *places.from_updates}
    return [path for path in arrays if path not in settled and _depends_on(obj, path)]


def _sort_by_name(places: GradientPlaces, without_gradient: Sequence[str]) -> None:
    """Tell parameters without a gradient from constants, by their names."""
    for path in without_gradient:
        kind = places.missing if looks_trained(path) else places.constants
        kind.append(path)


def _match_by_name(
    arrays: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    written: Mapping[str, np.ndarray],
    returned: Mapping[str, np.ndarray],
) -> dict[str, str]:
    """Return where the gradients of arrays are by their names.

    The very names come first, even of arrays that were not written: `db` stays 0 if the backward
    pass writes `dbias` by mistake. Then come synonyms among those that were written or returned.
    """
    by_key = {place: array for place, array in returned.items() if place.endswith("']")}
    candidates = {**written, **by_key}
    matches = match_gradients(arrays, {**after, **by_key}, exact=True, preferred=candidates)
    rest = {path: array for path, array in arrays.items() if path not in matches}
    return matches | match_gradients(rest, candidates, taken=matches.values())


def _assign_in_order(
    dependent: Sequence[str], arrays: Mapping[str, np.ndarray], unassigned: dict[str, np.ndarray]
) -> dict[str, str]:
    """Return places among what was returned, for arrays that have no gradient by name."""
    if len(dependent) == len(unassigned):
        return dict(zip(dependent, unassigned, strict=True))
    places: dict[str, str] = {}
    left = dict(unassigned)
    for path in dependent:
        fitting = [place for place, array in left.items() if array.shape == arrays[path].shape]
        if fitting:
            places[path] = fitting[0]
            left.pop(fitting[0])
    return places


def _depends_on(obj: StatefulObject, path: str) -> bool:
    """Whether the output changes when an array inside the object does."""

    def output(step: float) -> Any:
        instance = copy_object(obj.base)
        array = np.asarray(read(instance, path), dtype=np.float64)
        write(instance, path, array + step * (move(array) + 0.01))
        return np.array(obj.forward(instance, copy_arrays_of(obj.call.values)).y)

    return changes_with_a_step(output)


def changes_with_a_step(output: Callable[[float], Any]) -> bool:
    """Whether what a function of a step returns for 1 differs from what it returns for 0."""
    try:
        return not np.array_equal(output(0.0), output(1.0), equal_nan=True)
    except Exception:  # not defined there
        return True


def _check_params(
    obj: StatefulObject, run: BackwardRun, params: Mapping[str, str]
) -> dict[str, str]:
    """Return the places that the user names, after checking that there are arrays."""
    parameters = all_paths(obj.base)
    after = all_paths(run.instance)
    for path, place in params.items():
        if path not in parameters:
            raise ValueError(
                f"params names {path!r}, but {obj.title} has no array of floats there; expected "
                f"some of {', '.join(parameters) or 'none'}{did_you_mean(path, parameters)}"
            )
        if not isinstance(read_place(run, place), (np.ndarray, np.number, float, int)):
            raise ValueError(
                f"params says that the gradient of {path} is in {place!r}, but after the backward "
                f"pass there is no array; expected one of {', '.join(after)}, or a place in what "
                f"it returned, such as 'return[1]'{did_you_mean(place, after)}"
            )
    return dict(params)
