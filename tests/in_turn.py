"""A table of cases above a test: as one test that names those that fail, or as a test each.

A case is what the last parameters of the test get: a tuple for several, anything else for one.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

Row = type(pytest.param())


def names_of(test: Callable[..., None], cases: Sequence[Any], of: str) -> list[str]:
    """Return the parameters that a table is for: `of`, or the last that no table below it has."""
    assert cases, "no case"
    if of:
        return [of]
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    tables = [[mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0] for mark in marks]
    below = {name for names in tables for name in names}
    left = [name for name in inspect.signature(test).parameters if name not in below]
    first = cases[0].values if isinstance(cases[0], Row) else cases[0]
    return left[-len(first) if isinstance(first, tuple) else -1 :]


def in_turn(*cases: Any, of: str = "") -> Callable[[Any], Any]:
    """Run a test once for each case, as `separately` does, but as a single test.

    For cases of a millisecond or so: each test by itself costs pytest several. Fixtures are made
    once for all cases, so a case must not change them. `of` names a parameter that gets tuples.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        names = names_of(test, cases, of)

        @functools.wraps(test)
        def run_all(**fixtures: Any) -> None:
            failed = []
            for case in cases:
                given = dict(zip(names, case if len(names) > 1 else (case,), strict=True))
                try:
                    test(**fixtures, **given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the case {given!r}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases fail", failed)

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in names]
        run_all.__signature__ = signature.replace(parameters=left)
        return run_all

    return decorate


def separately(*cases: Any, of: str = "", **options: Any) -> Callable[[Any], Any]:
    """Make a test of each case: `pytest.mark.parametrize`, which takes the options."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        names = names_of(test, cases, of)
        argument = names if len(names) > 1 else names[0]
        return pytest.mark.parametrize(argument, cases, **options)(test)

    return decorate
