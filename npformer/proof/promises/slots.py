"""Parameters that an object holds beside their gradients: `w` and `dw`, `data` and `grad` ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.proof.problem import is_array_of_floats
from npformer.proof.promises.setting_names import plain_name, word_set

HOLDERS = word_set(
    "params parameters param weights model layers layer network net variables trainable "
    "trainable_params param_groups module"
)
"""Attributes of an optimizer that hold what it updates, by plain name."""

VALUES_BESIDE_GRAD = "data", "value", "val", "w", "array", "weight", "tensor", "numpy_data"
"""Attributes that hold the value of an object whose gradient is called `grad` or `gradient`."""

GRADIENT_HOLDERS = {
    "params": "grads",
    "parameters": "gradients",
    "param": "grad",
    "weights": "grads",
}
"""Two containers of one object: arrays, and gradients under the same keys."""

DEPTH = 6
"""How deep an optimizer's objects are searched."""


@dataclass
class Slot:
    """A parameter in an attribute, a dict or a list, and where its gradient goes.

    `gradient_owner` is None if the gradient is passed with each step.
    """

    owner: Any
    key: Any
    gradient_owner: Any = None
    gradient_key: Any = None

    def read(self) -> Any:
        """Return the parameter's present value."""
        return read_item(self.owner, self.key)

    def write(self, value: np.ndarray) -> None:
        """Set the parameter: in place where that works, as others may hold the same array."""
        array = self.read()
        if array.flags.writeable and array.shape == value.shape:
            array[...] = value
        else:
            write_item(self.owner, self.key, value)

    def write_gradient(self, gradient: np.ndarray) -> None:
        """Set the gradient, if it has a place."""
        if self.gradient_owner is not None:
            write_item(self.gradient_owner, self.gradient_key, gradient)


def read_item(owner: Any, key: Any) -> Any:
    """Return an item of a dict or a list, or an attribute."""
    if isinstance(owner, Mapping | list):
        return owner[key]
    return getattr(owner, key)


def write_item(owner: Any, key: Any, value: Any) -> None:
    """Set an item of a dict or a list, or an attribute."""
    if isinstance(owner, Mapping | list):
        owner[key] = value  # type: ignore[index]
    else:
        setattr(owner, key, value)


def slots_of_optimizer(optimizer: Any) -> list[Slot]:
    """Return the slots of what an optimizer holds; empty if it holds no parameters."""
    values = dict(getattr(optimizer, "__dict__", {}))
    for name, value in values.items():
        if plain_name(name) in HOLDERS:
            slots = list(_slots_of(value, seen=set(), depth=0))
            slots = slots or list(_bare_slots(optimizer, name, value))
            if slots:
                return slots
    return []


def _bare_slots(optimizer: Any, name: str, value: Any) -> Iterator[Slot]:
    """Yield slots of arrays in a container; gradients lie in another, or come with each step."""
    gradient_name = name.replace(plain_name(name), GRADIENT_HOLDERS.get(plain_name(name), "grads"))
    gradient_owner = getattr(optimizer, gradient_name, None)
    if not isinstance(gradient_owner, list | dict):
        gradient_owner = None
    for key in _keys_of(value):
        if is_array_of_floats(value[key]):
            yield Slot(value, key, gradient_owner, key)


def _keys_of(container: Any) -> list[Any]:
    if isinstance(container, Mapping):
        return list(container)
    return list(range(len(container))) if isinstance(container, list) else []


def _slots_of(value: Any, seen: set[int], depth: int) -> Iterator[Slot]:
    """Yield the slots with gradients in an object and what it holds."""
    if depth > DEPTH or id(value) in seen or isinstance(value, np.ndarray | str | bytes):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        items = dict(value)
    elif isinstance(value, list | tuple):
        items = dict(enumerate(value))
    else:
        items = dict(getattr(value, "__dict__", {}))
    pairs = list(_pairs_in(value, items))
    yield from pairs
    paired_keys = {slot.key for slot in pairs} | {slot.gradient_key for slot in pairs}
    for key, item in items.items():
        if key not in paired_keys and not _is_plain(item):
            yield from _slots_of(item, seen, depth + 1)


def _is_plain(item: Any) -> bool:
    return item is None or isinstance(item, np.ndarray | str | bytes | int | float | bool)


def _pairs_in(owner: Any, items: dict[Any, Any]) -> Iterator[Slot]:
    """Yield the arrays of an object that have their gradient in it, too."""
    for values_name, gradients_name in GRADIENT_HOLDERS.items():
        yield from _pairs_of_containers(items.get(values_name), items.get(gradients_name))
    for name, item in items.items():
        gradient_name = gradient_name_of(name, items) if isinstance(name, str) else None
        if gradient_name is not None and is_array_of_floats(item):
            yield Slot(owner, name, owner, gradient_name)


def _pairs_of_containers(values: Any, gradients: Any) -> Iterator[Slot]:
    """Yield the arrays of a list or a dict whose gradients are in another."""
    if isinstance(values, list | dict) and isinstance(gradients, list | dict):
        for key in _keys_of(values):
            if is_array_of_floats(values[key]):
                yield Slot(values, key, gradients, key)


def gradient_name_of(name: str, names: Any) -> str | None:
    """Return the name of a parameter's gradient among other names; None if there is none."""
    conventions = [f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"{name}_gradient"]
    conventions += [f"grad{name}", f"{name}grad", f"gradient_{name}", f"grad_wrt_{name}"]
    if name.lstrip("_") in VALUES_BESIDE_GRAD:
        conventions += ["grad", "gradient", "_grad"]
    return next((convention for convention in conventions if convention in names), None)
