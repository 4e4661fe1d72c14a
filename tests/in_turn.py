"""A table of cases above a test: as one test that names those that fail, or as a test each."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest


def in_turn(names: str | tuple[str, ...], *values: Any) -> Callable[[Any], Any]:
    """Run a test once for each value, as `pytest.mark.parametrize` does, but as a single test.

    For cases of a millisecond or so: each test by itself costs pytest several. Fixtures are made
    once for all cases, so a case must not change them. `separately` takes the same table.
    """
    names = tuple(names.split(", ")) if isinstance(names, str) else names
    cases = [value if len(names) > 1 else (value,) for value in values]
    assert cases, "no case"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(**fixtures: Any) -> None:
            failed = []
            for case in cases:
                try:
                    test(**fixtures, **dict(zip(names, case, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the case {dict(zip(names, case, strict=True))!r}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases fail", failed)

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in names]
        run_all.__signature__ = signature.replace(parameters=left)
        return run_all

    return decorate


def separately(names: str | tuple[str, ...], *values: Any, **options: Any) -> pytest.MarkDecorator:
    """Make a test of each value, as `pytest.mark.parametrize`; its table is that of `in_turn`."""
    return pytest.mark.parametrize(names, values, **options)
