"""How parameters are handed to an optimizer: in a dict, a list, one by one, or each by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.proof.promises.argument_roles import Argument
from npformer.proof.promises.setting_names import word_set

Arrays = list[np.ndarray]

DICT_STATES = word_set("config optim_config state states opt_state optimizer_state")
"""States that begin as an empty dict."""


def names_of(count: int) -> list[str]:
    """Return the names of parameters: W1, b1, W2, b2 ..."""
    return [f"{'Wb'[i % 2]}{i // 2 + 1}" for i in range(count)]


@dataclass
class Packing:
    """One array after the other: each call gets a parameter and its gradient."""

    words: str = "one array for each call"
    is_container: bool = False

    def groups(self, count: int) -> list[tuple[int, ...]]:
        """Return which parameters each call of a step gets."""
        return [(i,) for i in range(count)]

    def pack(self, arrays: Arrays) -> Any:
        """Return what is passed for parameters."""
        return arrays[0]

    def pack_gradients(self, gradients: Arrays) -> Any:
        """Return what is passed for gradients."""
        return gradients[0]

    def unpack(self, value: Any, before: Arrays) -> Arrays | None:
        """Return arrays of the shapes of `before` from what was passed or returned, or None."""
        return arrays_like([value], before)

    def refill(self, container: Any, arrays: Arrays) -> None:
        """Put new arrays into the container that the next call gets."""

    def state(self, name: str, gradients: Arrays) -> Any:
        """Return a state before the first step: zeros, or an empty dict."""
        if name.lower() in DICT_STATES:
            return {}
        return self.pack_gradients([np.zeros_like(g) for g in gradients])

    def values(
        self, arguments: list[Argument], container: Any, gradients: Arrays, group: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the values of a call, by argument name."""
        values = {a.name: self._value(a, container, gradients, group) for a in arguments}
        return {name: value for name, value in values.items() if value is not None}

    def _value(
        self, argument: Argument, container: Any, gradients: Arrays, group: tuple[int, ...]
    ) -> Any:
        """Return what is passed for an argument; None if it is not a matter of parameters."""
        if argument.role == "parameter" and not argument.is_optional:
            return container
        if argument.role == "gradient":
            return self.pack_gradients(gradients)
        if argument.role == "key" and not self.is_container:
            return names_of(group[0] + 1)[-1]
        if argument.role == "pairs":
            pairs = list(zip(container, gradients, strict=True))
            starts_with_gradients = argument.name.lower().startswith("grad")
            return [pair[::-1] for pair in pairs] if starts_with_gradients else pairs
        return None


@dataclass
class ListPacking(Packing):
    """Lists of all parameters and of all gradients."""

    words: str = "lists"
    is_container: bool = True

    def groups(self, count: int) -> list[tuple[int, ...]]:
        """Return one group of all parameters."""
        return [tuple(range(count))]

    def pack(self, arrays: Arrays) -> Any:
        """Return a list."""
        return list(arrays)

    def pack_gradients(self, gradients: Arrays) -> Any:
        """Return a list."""
        return list(gradients)

    def unpack(self, value: Any, before: Arrays) -> Arrays | None:
        """Return the arrays of a list or a tuple."""
        return arrays_like(value, before) if isinstance(value, list | tuple) else None

    def refill(self, container: Any, arrays: Arrays) -> None:
        """Put new arrays into the list."""
        container[:] = arrays


@dataclass
class DictPacking(ListPacking):
    """Dicts of all parameters and of all gradients, whose keys may have a prefix: dW1 of W1."""

    words: str = "dicts"
    prefix: str = ""
    names: tuple[str, ...] = ()

    def _names(self, count: int) -> list[str]:
        return list(self.names) or names_of(count)

    def pack(self, arrays: Arrays) -> Any:
        """Return a dict."""
        return dict(zip(self._names(len(arrays)), arrays, strict=True))

    def pack_gradients(self, gradients: Arrays) -> Any:
        """Return a dict."""
        names = [self.prefix + name for name in self._names(len(gradients))]
        return dict(zip(names, gradients, strict=True))

    def unpack(self, value: Any, before: Arrays) -> Arrays | None:
        """Return the arrays of a dict with the same keys."""
        names = self._names(len(before))
        if not isinstance(value, Mapping) or not all(name in value for name in names):
            return None
        return arrays_like([value[name] for name in names], before)

    def refill(self, container: Any, arrays: Arrays) -> None:
        """Put new arrays into the dict."""
        container.update(self.pack(arrays))


@dataclass
class NamedPacking(ListPacking):
    """Each parameter is an argument of its own: ``update(w, b, dw, db)``."""

    words: str = "one argument for each array"

    def values(
        self, arguments: list[Argument], container: Any, gradients: Arrays, group: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the values of a call: parameters and gradients in the order of the arguments."""
        names = [argument.name for argument in arguments if argument.role == "parameter"]
        gradient_names = [argument.name for argument in arguments if argument.role == "gradient"]
        values = dict(zip(names, container, strict=True))
        values.update(zip(gradient_names, gradients, strict=True))
        values.update({a.name: "layer1" for a in arguments if a.role == "key"})
        return values


def arrays_like(values: Any, before: Arrays) -> Arrays | None:
    """Return arrays if there is one of floats for each of `before`, of its shape; else None."""
    if not isinstance(values, list | tuple) or len(values) != len(before):
        return None
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) != len(before) or any(x.dtype.kind != "f" for x in arrays):
        return None
    if any(x.shape != y.shape for x, y in zip(arrays, before, strict=True)):
        return None
    return arrays
