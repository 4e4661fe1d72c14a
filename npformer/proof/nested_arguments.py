"""Arguments that hold arrays in dictionaries and lists, such as the weights of a cell.

Each array inside gets a name, ``w['Wz']``, and is checked by itself. The gradients that a backward
pass returns in a dictionary or a list of the same form are named alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npformer.proof.problem import is_array_of_floats
from npformer.proof.returned import key_of_gradient


def holds_arrays(value: Any) -> bool:
    """Whether a value is a dictionary, a list or a tuple with an array of floats in it."""
    if type(value) not in (dict, list, tuple):
        return False
    return any(is_array_of_floats(entry) or holds_arrays(entry) for _, entry in _entries(value))


def name_entries(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each entry of an argument, the innermost ones."""
    if not holds_arrays(value):
        yield name, value
        return
    for key, entry in _entries(value):
        yield from name_entries(_name_of_entry(name, key), entry)


def rebuild(name: str, value: Any, entries: Mapping[str, Any]) -> Any:
    """Return an argument of the form of `value`, with other entries by their names."""
    if not holds_arrays(value):
        return entries[name]
    rebuilt = {
        key: rebuild(_name_of_entry(name, key), entry, entries) for key, entry in _entries(value)
    }
    return rebuilt if isinstance(value, dict) else type(value)(rebuilt.values())


def gradients_by_name(gradients: Any, arguments: Mapping[str, Any]) -> Any:
    """Return gradients by the names of entries, if they have the form of the arguments.

    Parameters
    ----------
    gradients : object
        What a backward pass returned: one object for each argument, in order or by name.
    arguments : mapping
        The differentiated arguments of the forward pass.
    """
    if not any(map(holds_arrays, arguments.values())):
        return gradients
    if isinstance(gradients, Mapping):
        objects = _objects_by_key(gradients, arguments)
    elif len(arguments) == 1:
        objects = [gradients]
    elif isinstance(gradients, (tuple, list)) and len(gradients) == len(arguments):
        objects = list(gradients)
    else:
        return gradients
    named: dict[str, Any] = {}
    for (name, argument), gradient in zip(arguments.items(), objects, strict=True):
        named |= _name_gradients_inside(name, argument, gradient)
    return named


def _objects_by_key(gradients: Mapping[Any, Any], arguments: Mapping[str, Any]) -> list[Any]:
    """Return what belongs to each argument; all, if it has no key: its entries may have one."""
    objects = []
    for name in arguments:
        key = key_of_gradient(gradients, name)
        objects.append(gradients if key is None else gradients[key])
    return objects


def _name_gradients_inside(name: str, argument: Any, gradient: Any) -> dict[str, Any]:
    if not holds_arrays(argument):
        return {name: gradient}
    named: dict[str, Any] = {}
    for key, entry in _entries(argument):
        if not (is_array_of_floats(entry) or holds_arrays(entry)):
            continue
        place = key_of_gradient(gradient, key) if isinstance(gradient, Mapping) else key
        if _has_place(gradient, place):
            named |= _name_gradients_inside(_name_of_entry(name, key), entry, gradient[place])
    return named


def _has_place(gradient: Any, place: Any) -> bool:
    if isinstance(gradient, Mapping):
        return place in gradient
    is_index = isinstance(place, int) and isinstance(gradient, Sequence)
    return is_index and place < len(gradient)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _name_of_entry(name: str, key: Any) -> str:
    return f"{name}[{key!r}]"
