"""A pair of functions, forward and backward, as gradcheck sees it."""

import copy
import inspect
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import describe
from npformer.proof.naming import numbers_of
from npformer.proof.nested_arguments import (
    gradients_by_name,
    holds_arrays,
    name_entries,
    rebuild,
)
from npformer.proof.pair_names import backward_names
from npformer.proof.problem import (
    Convert,
    Problem,
    copy_arrays,
    is_output_with_cache,
    one_output,
)
from npformer.proof.returned import name_gradients

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
"""What each evaluation gets a fresh copy of, so that it draws the same numbers."""

OUTPUT_NAMES = ("y", "out", "output")
"""What a backward pass may call the output of the forward pass."""


@dataclass(frozen=True)
class OutputAlone:
    """In place of a cache: the forward pass returned its output alone."""

    y: Any


@dataclass(frozen=True)
class CacheAtEnd:
    """A cache that was returned after several outputs; backward takes a gradient for each."""

    value: Any


def takes(function: Any, n: int) -> bool:
    """Whether a function requires n arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return n == sum(p.default is inspect.Parameter.empty for p in parameters)


def pair_problem(
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    wrt: Sequence[str] | None,
    convert: Convert | None = None,
    other_ids: bool = False,
) -> Problem:
    """Return a pair of functions as a function of the arguments that `wrt` names.

    Arrays of floats are copied by `convert`. A forward pass may return (y, cache), or y alone; then
    the backward pass is called as backward(dy, ...) with the arguments of the forward pass or its
    output that its signature names.
    """
    forward_pass, backward_pass = pair_of(target)
    call = Call(forward_pass, inputs, options, opens_containers=True)
    values, floats = copy_arrays(call.values.items(), convert, other_ids)
    wrt = floats if wrt is None else call.check_names(wrt, floats)

    def forward() -> tuple[Any, Any]:
        result = call.run(copy_generators(values))
        return one_output(*_split_result(result, forward_pass, backward_pass))

    def backward(dy: Any, cache: Any, start: float = 0.0) -> dict[str, Any]:
        cache, split = cache
        result = _run_backward(backward_pass, split(dy), cache, call.as_passed(values))
        result = gradients_by_name(result, call.differentiated(wrt))
        advice = "If some of them have no gradient, name the others in wrt"
        if len(wrt) == 1 and not isinstance(result, (tuple, list, dict)):
            result = (result,)
        return name_gradients(result, wrt, name_of(backward_pass), advice)

    arrays = {name: values[name] for name in wrt}
    constants = [
        value for name, value in values.items() if isinstance(value, np.ndarray) and name not in wrt
    ]

    def convert_arrays(
        convert: Convert, other_ids: bool = False
    ) -> AbstractContextManager[Problem]:
        return nullcontext(pair_problem(target, inputs, options, wrt, convert, other_ids))

    return Problem(
        title=name_of(forward_pass),
        forward=forward,
        backward=backward,
        arrays=arrays,
        inputs=wrt[:1],
        constants=constants,
        convert_arrays=convert_arrays,
    )


def numbers_of_arguments(
    target: Any, inputs: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, float]:
    """Return the numbers that a pair is given, such as dropout's p, also those in dictionaries."""
    forward_pass, _ = pair_of(target)
    arguments = Call(forward_pass, inputs, options).values
    numbers = numbers_of(arguments)
    for value in arguments.values():
        if isinstance(value, Mapping):
            numbers = {**numbers_of(value), **numbers}
    numbers.pop("seed", None)
    return numbers


def _split_result(result: Any, forward_pass: Any, backward_pass: Any) -> tuple[Any, Any]:
    """Return (y, cache) of what a forward pass returned."""
    if is_output_with_cache(result):
        y, cache = result
        return y, cache
    if isinstance(result, tuple) and len(result) > 2 and takes(backward_pass, len(result)):
        *outputs, last = result
        return tuple(outputs), CacheAtEnd(last)
    if isinstance(result, (tuple, list)):
        raise TypeError(
            f"{name_of(forward_pass)} returned a {type(result).__name__} of {len(result)}; "
            "expected (y, cache), or y alone. Several outputs are a tuple: ((y1, y2), cache), "
            "or stand before the cache if backward takes a gradient for each: (y1, y2, cache)"
        )
    return result, OutputAlone(result)


def _run_backward(backward_pass: Any, dy: Any, cache: Any, values: dict[str, Any]) -> Any:
    """Return what a backward pass returns for a dy, or for one dy for each output.

    After the cache it may take arguments of the forward pass again, such as ``activation="relu"``.
    """
    if isinstance(cache, OutputAlone):
        return backward_pass(dy, *arguments_of_backward(backward_pass, values, cache.y))
    positional = (*dy, cache.value) if isinstance(cache, CacheAtEnd) else (dy, cache)
    repeated = _names_after(backward_pass, len(positional)) & values.keys()
    return backward_pass(*positional, **{name: values[name] for name in repeated})


def _names_after(function: Any, n: int) -> set[str]:
    """Return the names of the parameters of a function after the first n."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # such as a ufunc
        return set()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name for p in parameters[n:] if p.kind in by_name}


class Call:
    """A function with its arguments by name, also those of ``*args`` and ``**kwargs``.

    With `opens_containers`, each array in a dictionary or a list is a value by itself.
    """

    def __init__(
        self,
        function: Any,
        inputs: tuple[Any, ...],
        options: dict[str, Any],
        opens_containers: bool = False,
    ) -> None:
        self.function = function
        self.bound = self._bind(inputs, options)
        self.values: dict[str, Any] = {}
        self._places: dict[str, tuple[str, Any]] = {}  # name: (parameter, index or key inside it)
        self._nested: dict[str, Any] = {}  # arguments with arrays inside dictionaries or lists
        for parameter, value in self.bound.arguments.items():
            kind = self.bound.signature.parameters[parameter].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                for index, entry in enumerate(value):
                    self._add(f"{parameter}[{index}]", entry, parameter, index)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                for key, entry in value.items():
                    self._add(key, entry, parameter, key)
            elif opens_containers and holds_arrays(value):
                self._nested[parameter] = value
                self.values |= name_entries(parameter, value)
            else:
                self._add(parameter, value, parameter, None)

    def _add(self, name: str, value: Any, parameter: str, key: Any) -> None:
        self.values[name] = value
        self._places[name] = parameter, key

    def run(self, values: dict[str, Any], function: Any = None) -> Any:
        """Call the function, or another one like it, with other values of the same arguments."""
        arguments: dict[str, Any] = {}
        for name, value in self.as_passed(values).items():
            parameter, key = self._places.get(name, (name, None))
            if key is None:
                arguments[parameter] = value
            elif isinstance(key, int):
                arguments[parameter] = (*arguments.get(parameter, ()), value)
            else:
                arguments.setdefault(parameter, {})[key] = value
        bound = inspect.BoundArguments(self.bound.signature, arguments)
        return (function or self.function)(*bound.args, **bound.kwargs)

    def as_passed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return values with dictionaries and lists in place of what is in them."""
        passed: dict[str, Any] = {}
        for name, value in values.items():
            argument = self.argument_of(name)
            if argument in self._nested:
                passed[argument] = None  # in this order
            else:
                passed[name] = value
        for argument, nested in self._nested.items():
            passed[argument] = rebuild(argument, nested, values)
        return passed

    def argument_of(self, name: str) -> str:
        """Return the argument that has a value in it, or else the value's own name."""
        argument = name.partition("[")[0]
        return argument if argument in self._nested else name

    def differentiated(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments that the names of some values belong to, in order."""
        arguments = dict.fromkeys(map(self.argument_of, names))
        return {name: self._nested.get(name) for name in arguments}

    def check_names(self, wrt: Sequence[str], floats: list[str]) -> list[str]:
        """Return the names in `wrt` after checking that they are those of float arrays.

        The name of a dictionary or a list means each array of floats in it.
        """
        if isinstance(wrt, str) or not isinstance(wrt, Sequence):
            raise TypeError(f"wrt is {describe(wrt)}; expected a list of names, such as ['x']")
        names: list[str] = []
        for name in wrt:
            inside = [other for other in floats if name in (other, self.argument_of(other))]
            if not inside:
                raise ValueError(
                    f"wrt names {name!r}; expected some of {', '.join(floats)}, the float arrays "
                    f"that {name_of(self.function)} was given"
                )
            names += inside
        return names

    def _bind(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> inspect.BoundArguments:
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # such as a ufunc of an older NumPy
            signature = _positional_signature(len(inputs))
        if isinstance(self.function, np.ufunc):
            signature = _positional_signature(len(inputs))
        try:
            return signature.bind(*inputs, **options)
        except TypeError as error:
            name = name_of(self.function)
            raise TypeError(
                f"{name} cannot be called like this: {error}; expected inputs and options "
                f"that fit {name}{signature}, besides gradcheck's own options"
            ) from None


def _positional_signature(n: int) -> inspect.Signature:
    """Return the signature of a function of n arrays, with further options by name."""
    names = ["x"] if n == 1 else [f"x{index}" for index in range(1, n + 1)]
    positional = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    options = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature([*positional, options])


def arguments_of_backward(backward: Any, values: dict[str, Any], y: Any) -> list[Any]:
    """Return what a backward pass takes after dy, where there is no cache.

    These are arguments of the forward pass, or its output, by the names in the signature; if none
    of the names is known and their number fits, all arguments of the forward pass in order.
    """
    try:
        _, *parameters = inspect.signature(backward).parameters.values()
    except (TypeError, ValueError):  # such as a ufunc
        return list(values.values())
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return list(values.values())
    known = dict.fromkeys(OUTPUT_NAMES, y)
    known |= {name.lower(): value for name, value in values.items()}
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    unknown = [name for name in required if name.lower() not in known]
    if not unknown:
        return [known[name.lower()] for name in names if name.lower() in known]
    if len(unknown) == len(required) == len(values):
        return list(values.values())
    raise TypeError(
        f"{name_of(backward)} takes {', '.join(unknown)}, and the forward pass returned no cache; "
        f"expected backward(dy, ...) with arguments of the forward pass ({', '.join(values)}) or "
        "its output y by their names, or a forward pass that returns (y, cache)"
    )


def copy_generators(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with a copy of each random generator, so that each call draws the same."""
    return {
        name: copy.deepcopy(value) if isinstance(value, GENERATORS) else value
        for name, value in values.items()
    }


def has_backward(target: Any) -> bool:
    """Whether a target is a pair, or a function whose backward pass is in the same module."""
    if isinstance(target, tuple):
        return True
    return callable(target) and backward_beside(target) is not None


def pair_of(target: Any) -> tuple[Any, Any]:
    """Return the two functions; a single function has its backward pass in the same module."""
    if isinstance(target, tuple) and len(target) == 2 and all(map(callable, target)):
        return target
    if not callable(target) or isinstance(target, type):
        raise TypeError(
            f"target is {describe(target)}; expected a layer, a function with a backward pass, or "
            "a pair of functions: gradcheck(layer, x), gradcheck((forward, backward), x)"
        )
    backward = backward_beside(target)
    if backward is None:
        name, module = name_of(target), getattr(target, "__module__", None) or "no module"
        raise TypeError(
            f"{name} has no {name}_backward in {module}; expected a pair. Pass "
            "both: gradcheck((forward, backward), ...)"
        )
    return target, backward


def backward_beside(forward: Any) -> Any:
    """Return the backward function in the module of a forward function, or None."""
    module = sys.modules.get(getattr(forward, "__module__", None) or "")
    for name in backward_names(name_of(forward)):
        backward = getattr(module, name, None)
        if callable(backward):
            return backward
    return None


def name_of(function: Any) -> str:
    """Return the name of a function."""
    return getattr(function, "__name__", None) or repr(function)  # a partial has none
