"""Errors that say more: where something is wrong, or what an argument is called here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Signature, isfunction, signature
from typing import ParamSpec, TypeVar

from npformer.core.support.other_names import suggest_argument

Suggest = Callable[[str, list[str]], str]
"""``suggest(name, known)`` says what to write instead of an unknown name, or nothing."""

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


@contextmanager
def add_place_to_errors(where: str) -> Iterator[None]:
    """Put `where`, such as "in data, ", in front of TypeErrors and ValueErrors of the body."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from error


def refuse_unknown_arguments(
    call: Callable[P, R], suggest: Suggest = suggest_argument
) -> Callable[P, R]:
    """Make a function say which arguments it takes, if it is given another."""
    parameters = signature(call)
    known = [n for n, p in parameters.parameters.items() if n != "self" and str(p)[0] != "*"]

    @wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        _refuse_unknown_names(call, values, named, known, suggest)
        try:
            return call(*values, **named)
        except TypeError:
            problem = _problem_of_call(parameters, values, named)
            if problem is None:  # the error is from inside
                raise
        what = _what_was_called(call, values)
        raise TypeError(f"{what}: {problem}; it takes {', '.join(known)}")

    return checked


def _refuse_unknown_names(
    call: Callable[..., object],
    values: tuple[object, ...],
    named: dict[str, object],
    known: list[str],
    suggest: Suggest,
) -> None:
    for name in named:
        if name not in known:
            hint = suggest(name, known)
            what = _what_was_called(call, values)
            raise TypeError(f"{what} takes no {name!r}; it takes {', '.join(known)}{hint}")


def _problem_of_call(
    parameters: Signature, values: tuple[object, ...], named: dict[str, object]
) -> str | None:
    """Return what is wrong with the number of arguments; None if they fit."""
    try:
        parameters.bind(*values, **named)
    except TypeError as error:
        return str(error)
    return None


def _what_was_called(call: Callable[..., object], values: tuple[object, ...]) -> str:
    """Return the name of a function as its caller wrote it, which may be that of a subclass."""
    if call.__name__ == "__init__":
        return type(values[0]).__name__
    if call.__name__ == "__call__":
        return f"{type(values[0]).__name__}.__call__"
    return call.__qualname__


def drop_class_from_names(base: C) -> C:
    """Let Python's errors about arguments name a base class's methods without the class.

    Who calls ``model.predict()`` on a SequenceClassifier wrote no Model, and would look for it.
    """
    for name, attribute in vars(base).items():
        method = getattr(attribute, "__func__", attribute)  # of a class method
        if isfunction(method) and name != "__init__":
            method.__qualname__ = name
    return base
