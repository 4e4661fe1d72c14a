"""Parameters and gradients that an object hands out itself: ``parameters()`` and ``gradients()``.

An optimizer pairs them by their order or by their keys, so these pairs come before those by names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.proof.foreign.arrays_inside import all_paths, objects_inside, read
from npformer.proof.foreign.gradient_names import match_gradients
from npformer.proof.foreign.stateful import copy_object
from npformer.proof.pair_names import required_names

PARAMETER_ACCESSORS = (
    "parameters",
    "params",
    "get_parameters",
    "get_params",
    "get_weights",
    "trainable_parameters",
    "trainable_params",
    "weights",
)
"""Methods, properties or attributes with parameters."""

GRADIENT_ACCESSORS = (
    "gradients",
    "grads",
    "get_gradients",
    "get_grads",
    "gradient",
    "grad",
)
"""And those with their gradients."""

PAIR_ACCESSORS = (
    "params_and_grads",
    "params_grads",
    "parameters_and_gradients",
    "get_params_and_grads",
    "get_params_grads",
    "get_parameters_and_gradients",
    "grads_and_params",
)
"""Those with pairs of both."""


Arrays = Mapping[str, np.ndarray]
"""Arrays by the steps to them, from what an accessor hands out: ``[0]`` or ``['W']``."""


@dataclass(frozen=True)
class Accessors:
    """The paths of what hands out parameters and of what hands out their gradients."""

    of_parameters: str
    of_gradients: str


def accessor_places(base: Any, after: Any) -> dict[str, str]:
    """Return where the gradients of parameters are that an object hands out, by their paths.

    Parameters
    ----------
    base, after : object
        The object as it was built, and a copy of it after both passes.
    """
    instance = copy_object(base)
    paths = _paths_of_unchanged(instance, after)
    places: dict[str, str] = {}
    built = objects_inside(base)
    owners = {path: owner for path, owner in objects_inside(after).items() if path in built}
    for within, owner in owners.items():
        for accessors in _accessors_of(owner, within):
            handed_out = _arrays_at(after, accessors.of_parameters)
            parameters = {step: array for step, array in handed_out.items() if id(array) in paths}
            gradients = _gradients_at(instance, after, accessors.of_gradients)
            for step, gradient in _pair(parameters, gradients).items():
                path = paths[id(parameters[step])]
                places.setdefault(path, accessors.of_gradients + gradient)
    return places


def _paths_of_unchanged(before: Any, after: Any) -> dict[int, str]:
    """Return the first path of each array that both passes left as it was, by its identity."""
    originals = all_paths(before)
    paths: dict[int, str] = {}
    for path, array in all_paths(after).items():
        if path in originals and np.array_equal(originals[path], array, equal_nan=True):
            paths.setdefault(id(array), path)
    return paths


def _accessors_of(owner: Any, within: str) -> Iterator[Accessors]:
    """Yield the accessors of one object, which is at the path `within`."""
    for pair_accessor in _paths_of(owner, within, PAIR_ACCESSORS):
        yield Accessors(pair_accessor, pair_accessor)
    for of_parameters in _paths_of(owner, within, PARAMETER_ACCESSORS):
        for of_gradients in _paths_of(owner, within, GRADIENT_ACCESSORS):
            yield Accessors(of_parameters, of_gradients)


def _paths_of(owner: Any, within: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the paths of those accessors that an object has, with () after a method."""
    for name in names:
        accessor = _attribute_of(owner, name)
        path = f"{within}.{name}".removeprefix(".")
        if not callable(accessor):
            yield from [path] if accessor is not None else []
        elif not required_names(accessor):
            yield f"{path}()"


def _attribute_of(owner: Any, name: str) -> Any:
    """Return an attribute; None if there is none, or a property that raises."""
    try:
        return getattr(owner, name, None)
    except Exception:  # in other people's code
        return None


def _arrays_at(root: Any, path: str) -> dict[str, np.ndarray]:
    """Return the arrays that an accessor hands out; none if it raises."""
    try:
        return all_paths(read(root, path))
    except Exception:  # in other people's code
        return {}


def _gradients_at(instance: Any, after: Any, path: str) -> dict[str, np.ndarray]:
    """Return the gradients that are handed out after both passes; none if all are as before."""
    before, gradients = _arrays_at(instance, path), _arrays_at(after, path)
    is_written = before.keys() != gradients.keys() or any(
        not np.array_equal(before[step], gradients[step]) for step in before
    )
    return gradients if is_written else {}


def _pair(parameters: Arrays, gradients: Arrays) -> dict[str, str]:
    """Return the step to the gradient of each parameter: its partner in a pair, or by its key."""
    partners = {
        step: partner
        for step in parameters
        for partner in (f"{step[:-3]}[0]", f"{step[:-3]}[1]")
        if partner in gradients and partner not in parameters
    }
    if partners and len(partners) == len(parameters):
        return partners
    if parameters.keys() != gradients.keys():
        return match_gradients(parameters, gradients)
    fit = all(parameters[step].shape == gradients[step].shape for step in parameters)
    return {step: step for step in parameters} if fit else {}
