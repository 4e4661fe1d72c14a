"""Builders, the classes and functions of a registry: which are refused, and why."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from npformer.core.support.wording import describe, did_you_mean


def builder_problem(name: str, builder: Any, makes: type | None, method: str) -> str:
    """Return why `builder` cannot make objects of the class `makes`; "" if it can.

    If the class method `method` makes them, the builder has to be a subclass of `makes`.
    """
    is_class = isinstance(builder, type)
    it_is = f"is {describe(builder)}"
    if not is_class and makes is not None and isinstance(builder, makes):
        kind = type(builder).__name__
        return (
            f"is an object of the class {kind}; expected the class or a function that makes one, "
            f"because each model has its own: register({name!r}, {kind})"
        )
    if not callable(builder):
        return f"{it_is}; expected a class or a function to call"
    if makes is None:
        return ""
    class_name = full_name(makes)
    if is_class and not issubclass(builder, makes):
        return (
            f"{it_is}, which is not derived from {class_name}; expected a class that is: "
            f"class {builder.__name__}({class_name})"
        )
    if method and not is_class:
        return (
            f"{it_is}; expected a class derived from {class_name}, whose class method {method} "
            "makes it"
        )
    attributes = ((name, getattr(builder, name, None)) for name in dir(builder))
    left_out = [name for name, a in attributes if getattr(a, "__isabstractmethod__", False)]
    if left_out:
        return (
            f"{it_is}, which lacks {', '.join(left_out)}; expected all that {class_name} requires"
        )
    return ""


def call_problem(
    name: str,
    build: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    options: Mapping[str, Any],
    gets: str,
) -> str:
    """Return why ``build(*arguments, **keywords, **options)`` cannot be called; "" if it can.

    All builders of a table get `arguments` and `keywords`, which `gets` describes; `name`
    and `options` are what the user wrote. Errors inside `build` are not looked for here.
    """
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # it may have none if it is not written in Python
        return ""
    with suppress(TypeError):
        signature.bind(*arguments, **keywords, **options)
        return ""
    parameters = signature.parameters
    positional = _names_of_kind(signature, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = positional + _names_of_kind(signature, inspect.Parameter.KEYWORD_ONLY)
    takes_any_name = bool(_names_of_kind(signature, inspect.Parameter.VAR_KEYWORD))
    from_table = {*positional[: len(arguments)], *keywords}
    option_names = [key for key in names if key not in from_table]
    refused = from_table if takes_any_name else {*options} - {*option_names}
    unknown = [key for key in options if key in refused]
    if unknown:
        return _unknown_option(unknown[0], option_names)
    required = [key for key in option_names if parameters[key].default is inspect.Parameter.empty]
    missing = [key for key in required if key not in options]
    takes_keywords = takes_any_name or set(keywords) <= set(names)
    if missing and takes_keywords:
        return _describe_missing_options(name, missing, gets)
    return (
        f"is built by {build!r}, which takes {signature}; expected a builder that takes what "
        f"this table passes: {gets}"
    )


def _describe_missing_options(name: str, missing: list[str], gets: str) -> str:
    """Return why a builder cannot be called without some of its options."""
    example = ", ".join(f"{key}=..." for key in missing)
    return (
        f"needs {', '.join(missing)}; expected '{name}({example})'. (Builders of this table "
        f"are called with {gets}.)"
    )


def _unknown_option(key: str, option_names: list[str]) -> str:
    """Return why an option is refused that a builder does not have."""
    expected = f"expected {' or '.join(option_names)}" if option_names else "it has none"
    return f"has no option {key!r}; {expected}{did_you_mean(key, option_names)}"


def _names_of_kind(signature: inspect.Signature, kind: Any) -> list[str]:
    """Return the names of parameters of a kind, in order."""
    return [p.name for p in signature.parameters.values() if p.kind is kind]


def check_takes(name: str, function: Any, n: int, what: str, expected: str) -> None:
    """Check that a function can be called with n arguments, if its signature is known."""
    try:
        with suppress(ValueError):  # some functions written in C have no signature
            inspect.signature(function).bind(*(None,) * n)
    except TypeError as error:
        problem = f"{name} cannot be called with {what} ({error})"
        raise TypeError(f"{problem}; expected {expected}") from None


def same_definition(one: Any, other: Any) -> bool:
    """Whether two classes or functions are the same, or one definition that was run twice."""
    if one is other:
        return True
    if isinstance(one, partial) and isinstance(other, partial):
        return same_definition(one.func, other.func)
    names = "__module__", "__qualname__"
    first, second = ([getattr(item, name, None) for name in names] for item in (one, other))
    return first == second and None not in first


def full_name(kind: type) -> str:
    """Return the dotted name of a class: ``npformer.core.layer.Layer``."""
    return f"{kind.__module__}.{kind.__name__}"
