"""Which options of a function or class its parity cases try: found from its signature."""

import inspect
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, get_args

import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by position, and by name."""


def with_named_options(kind: type) -> type:
    """Return a class, or the base that names the options which the class hands on by ``**``."""
    for base in kind.__mro__:
        kinds = {parameter.kind for parameter in inspect.signature(base).parameters.values()}
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return base
    return kind


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options with their defaults: also what has none, but may be None."""
    defaults = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
        elif NoneType in get_args(parameter.annotation):
            defaults[name] = None
    return defaults


def untried_options(function: Callable[..., Any], calls: Iterable[Call]) -> list[str]:
    """Return the options for which the calls do not have both the default and another value."""
    signature = inspect.signature(function)
    untried = {(name, is_default) for name in options_of(function) for is_default in (True, False)}
    for args, kwargs in calls:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, default in options_of(function).items():
            untried.discard((name, _same(bound.arguments[name], default)))
    return [
        f"{name}: only the default" if not is_default else f"{name}: never the default"
        for name, is_default in sorted(untried)
    ]


def _same(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))
