"""What an object with state does besides its derivative: keep, add up, change what it was given.

None of this makes a derivative wrong. It matters to whoever calls the passes in another order, such
as two forward passes before their backward passes.
"""

from dataclasses import replace

import numpy as np

from npformer.proof.foreign.arrays_inside import all_paths, changed_arrays
from npformer.proof.foreign.gradient_places import (
    GradientPlaces,
    copy_arrays_of,
    read_place,
)
from npformer.proof.foreign.stateful import BackwardRun, ForwardRun, StatefulObject, copy_object
from npformer.proof.problem import is_array_of_floats, move_ids
from npformer.proof.results import TOLERANCES, Results, difference
from npformer.proof.rules import move

CHANGES_INPUT = "changes its input"

MOST_PATHS = 6
"""How many of the arrays that an object keeps are named."""


def observe_protocol(obj: StatefulObject, places: GradientPlaces, v: np.ndarray) -> list[str]:
    """Return what the passes of an object do to it and to their arguments."""
    observations = []
    values = copy_arrays_of(obj.call.values)
    run = obj.forward(copy_object(obj.base), values)
    if _differ(values, obj.call.values):
        observations.append(CHANGES_INPUT)
    state = _shorten(list(changed_arrays(run.instance, all_paths(obj.base))))
    dy = np.array(v)
    expected = _gradients(obj, places, copy_object(run), dy)
    if not np.array_equal(dy, v):
        observations.append("changes dy")
    if _second_forward_spoils(obj, places, v, expected):
        what = f"state ({state})" if state else "state"
        observations.append(
            f"keeps {what}: of two forward passes, only the last one has a backward pass"
        )
    if _second_forward_is_ignored(obj, places, v):
        observations.append(
            "keeps what the first forward pass has seen: after a second one the gradients are not "
            "those of the second"
        )
    if places.from_updates:
        observations.append(
            f"updates {', '.join(places.from_updates)} in its backward pass: the gradients are "
            "taken from the steps at a learning rate of 1"
        )
    else:
        observations += _second_backward(obj, places, v, expected)
    if _keeps_reference(obj, places, v, expected):
        observations.append(
            "keeps its input itself, not a copy: changing x before the backward pass changes the "
            "gradients"
        )
    return observations


def _differ(one: dict[str, object], other: dict[str, object]) -> bool:
    arrays = [name for name, value in one.items() if isinstance(value, np.ndarray)]
    return not all(np.array_equal(one[n], other[n]) for n in arrays)  # type: ignore[arg-type]


def _shorten(paths: list[str]) -> str:
    """Return the first paths, and how many more there are."""
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return ", ".join(paths[:MOST_PATHS]) + more


def _gradients(
    obj: StatefulObject, places: GradientPlaces, run: ForwardRun, dy: np.ndarray
) -> Results:
    """Return copies of all gradients that a backward pass on this very run leaves."""
    backward_run: BackwardRun = obj.backward(run, dy)
    all_places = places.of_inputs | places.of_parameters
    gradients = {name: read_place(backward_run, place) for name, place in all_places.items()}
    return {name: np.array(g) for name, g in gradients.items() if g is not None}


def _equal(one: Results, other: Results) -> bool:
    error, _ = difference("float64", one, other)
    return error <= TOLERANCES["float64"]


def _second_forward_spoils(
    obj: StatefulObject, places: GradientPlaces, v: np.ndarray, expected: Results
) -> bool:
    """Whether a forward pass on other values changes the gradients of the first one."""
    instance = copy_object(obj.base)
    first = obj.forward(instance, copy_arrays_of(obj.call.values))
    other_values = {name: _other_value(value) for name, value in obj.call.values.items()}
    try:
        obj.forward(instance, other_values)
    except Exception:  # not defined there
        return False
    return not _equal(_gradients(obj, places, first, v), expected)


def _second_forward_is_ignored(obj: StatefulObject, places: GradientPlaces, v: np.ndarray) -> bool:
    """Whether the gradients after a second forward pass are not those of a fresh object."""
    other_values = {name: _other_value(value) for name, value in obj.call.values.items()}
    used_object = copy_object(obj.base)
    obj.forward(used_object, copy_arrays_of(obj.call.values))
    try:
        second = obj.forward(used_object, copy_arrays_of(other_values))
        fresh = obj.forward(copy_object(obj.base), copy_arrays_of(other_values))
    except Exception:  # not defined there
        return False
    if not np.array_equal(second.y, fresh.y):
        return False  # such as a generator, or a count of its calls
    first_gradients = _gradients(obj, places, second, np.array(v))
    return not _equal(first_gradients, _gradients(obj, places, fresh, np.array(v)))


def _other_value(value: object) -> object:
    """Return an array with other numbers or other ids; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return value + move(value) if is_array_of_floats(value) else move_ids(value)


def _second_backward(
    obj: StatefulObject, places: GradientPlaces, v: np.ndarray, expected: Results
) -> list[str]:
    """Return what a second backward pass of the same forward pass does to the gradients."""
    run = obj.forward(copy_object(obj.base), copy_arrays_of(obj.call.values))
    obj.backward(run, np.array(v))
    try:
        again = _gradients(obj, places, run, np.array(v))
    except Exception as error:  # such as a cache that was emptied
        return [f"raises {type(error).__name__} if its backward pass is called twice"]
    if _equal(again, expected):
        return []
    doubled = [
        name
        for name, gradient in again.items()
        if np.allclose(gradient, 2.0 * expected[name]) and np.any(gradient != 0.0)
    ]
    others = {name: g for name, g in again.items() if name not in doubled}
    if _equal(others, {name: expected[name] for name in others}):
        return [f"adds to the gradients of {', '.join(doubled)}: set them to 0 before each step"]
    return ["gives other gradients if its backward pass is called twice"]


def _keeps_reference(
    obj: StatefulObject, places: GradientPlaces, v: np.ndarray, expected: Results
) -> bool:
    """Whether changing the inputs after the forward pass changes the gradients."""
    values = copy_arrays_of(obj.call.values)
    run = obj.forward(copy_object(obj.base), values)
    run = replace(run, values=copy_arrays_of(values))  # what the backward pass is given again
    for value in values.values():
        if is_array_of_floats(value):
            value += move(value)
    return not _equal(_gradients(obj, places, run, np.array(v)), expected)
