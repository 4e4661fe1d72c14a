"""Arrays inside objects: where they are, how to read them and how to write them.

A path is written as in Python, from the object on: ``W``, ``layers[0].weight``, ``grads['W']``,
``gradients()[0]``.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from npformer.proof.problem import is_array_of_floats

Step = tuple[str, Any]
"""("attribute", name), ("item", index or key), or ("call", None) of a method without arguments."""

DEEPEST = 10
"""How many objects, lists and dictionaries deep arrays are looked for."""

STEP_PATTERN = re.compile(
    r"""\.?(?P<name>[^\W\d]\w*)|\[(?P<index>-?\d+)\]|\[['"](?P<key>.*?)['"]\]|(?P<call>\(\))"""
)

LEAVES = (str, bytes, int, float, complex, type, types.ModuleType, types.FunctionType, type(None))
"""What has no arrays inside."""


def arrays_inside(root: Any, within: str = "") -> dict[str, np.ndarray]:
    """Return all arrays of floats in an object, by their paths; one that is tied has one path.

    Paths begin with that of the object itself, `within`.
    """
    arrays: dict[str, np.ndarray] = {}
    known: set[int] = set()
    for path, value in all_paths(root, within).items():
        if id(value) not in known:
            known.add(id(value))
            arrays[path] = value
    return arrays


def all_paths(root: Any, within: str = "") -> dict[str, np.ndarray]:
    """Return all arrays of floats in an object, by each of their paths."""
    return dict(_walk(root, within, DEEPEST, frozenset(), is_array_of_floats))


def numbers_inside(root: Any, within: str = "") -> dict[str, np.ndarray]:
    """Return all numbers in an object, such as ``self.gamma = 1.0``, as arrays without axes."""
    numbers = _walk(root, within, DEEPEST, frozenset(), _is_number)
    return {path: np.array(float(number)) for path, number in numbers}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def changed_arrays(root: Any, before: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays inside an object that are new, or unlike what they were before."""
    return unlike(all_paths(root), before)


def unlike(
    arrays: Mapping[str, np.ndarray], before: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the arrays that are new, or unlike what they were before."""
    return {
        path: array
        for path, array in arrays.items()
        if path not in before or not np.array_equal(before[path], array, equal_nan=True)
    }


def _walk(
    value: Any,
    path: str,
    depth: int,
    parents: frozenset[int],
    is_wanted: Callable[[Any], bool],
) -> Iterator[tuple[str, Any]]:
    """Yield (path, entry) for all that is wanted in a value, such as arrays of floats."""
    if is_wanted(value):
        yield path, value
    elif depth > 0 and id(value) not in parents and not isinstance(value, LEAVES):
        for step, entry in _entries(value):
            inner_path = (path + step).removeprefix(".")
            yield from _walk(entry, inner_path, depth - 1, parents | {id(value)}, is_wanted)


def objects_inside(root: Any) -> dict[str, Any]:
    """Return an object, and all objects that it holds, by their paths; each has one path."""
    objects: dict[str, Any] = {"": root}
    known = {id(root)}
    queue = [("", root, DEEPEST)]
    while queue:
        path, value, depth = queue.pop(0)
        for step, entry in _entries(value) if depth > 0 else ():
            if isinstance(entry, (*LEAVES, np.ndarray)) or id(entry) in known:
                continue
            known.add(id(entry))
            inner_path = (path + step).removeprefix(".")
            queue.append((inner_path, entry, depth - 1))
            if not isinstance(entry, (dict, list, tuple)):
                objects[inner_path] = entry
    return objects


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (step, entry) for what a value holds: entries or attributes."""
    if isinstance(value, dict):
        keys = [key for key in value if isinstance(key, (str, int))]
        yield from ((f"[{key!r}]", value[key]) for key in keys)
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", entry) for index, entry in enumerate(value))
    elif isinstance(value, np.ndarray):
        if value.dtype == object and value.ndim == 1:
            yield from ((f"[{index}]", entry) for index, entry in enumerate(value))
    else:
        yield from ((f".{name}", entry) for name, entry in _attributes(value).items())


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that belong to it, not to its class."""
    attributes = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                attributes[name] = getattr(value, name)
    return attributes


def steps_of(path: str) -> list[Step]:
    """Return the steps of a path. Raises ValueError for what is not one."""
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = STEP_PATTERN.match(path, position)
        if match is None:
            raise ValueError(
                f"{path!r} is not a path; expected one such as 'W', 'norm.gamma', 'layers[0].W' or "
                "\"grads['W']\""
            )
        if match["name"] is not None:
            steps.append(("attribute", match["name"]))
        elif match["call"] is not None:
            steps.append(("call", None))
        elif match["index"] is not None:
            steps.append(("item", int(match["index"])))
        else:
            steps.append(("item", match["key"]))
        position = match.end()
    return steps


def read(root: Any, path: str) -> Any:
    """Return what is at a path. Raises LookupError if there is nothing."""
    value = root
    for kind, key in steps_of(path):
        try:
            value = _take(value, kind, key)
        except (AttributeError, LookupError, TypeError):
            raise LookupError(path) from None
    return value


def _take(value: Any, kind: str, key: Any) -> Any:
    """Return what one step leads to; what an iterator yields is a list."""
    if kind == "attribute":
        return getattr(value, key)
    if kind == "item":
        return value[key]
    result = value()
    return list(result) if isinstance(result, Iterator) else result


def write(root: Any, path: str, value: Any) -> None:
    """Put a value at a path."""
    *steps, (kind, key) = steps_of(path)
    for step, name in steps:
        root = _take(root, step, name)
    if kind == "attribute":
        setattr(root, key, value)
    else:
        root[key] = value


def convert_to_float64(root: Any) -> list[str]:
    """Replace all arrays of other floats inside an object; return their paths."""
    converted: dict[int, np.ndarray] = {}
    originals = all_paths(root)
    changed = []
    for path, array in originals.items():
        if array.dtype != np.float64:
            converted.setdefault(id(array), array.astype(np.float64))
            try:
                write(root, path, converted[id(array)])
            except (TypeError, AttributeError):  # in a tuple, or an attribute that is read-only
                continue
            changed.append(path)
    return changed
