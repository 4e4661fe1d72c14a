"""Which cases of a list run by default: the others get a mark that pyproject.toml leaves out."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def first_of_each(
    cases: Iterable[Any],
    kind: Callable[[Any], Any] = lambda case: case.name,
    mark: pytest.MarkDecorator = pytest.mark.slow,
) -> list[Any]:
    """Return cases for `parametrize`, marked but for the first of each kind.

    A case for several arguments is a tuple, whose first entry usually is its kind.
    """
    seen, marked = set(), []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marked.append(pytest.param(*values, marks=[mark] if kind(case) in seen else []))
        seen.add(kind(case))
    return marked


def usually(
    chosen: Sequence[Any], cases: Iterable[Any], mark: pytest.MarkDecorator = pytest.mark.slow
) -> list[Any]:
    """Return cases for `parametrize`, marked but for those that are chosen."""
    cases = list(cases)
    assert set(chosen) <= set(cases), "a case that is chosen is gone"
    return [pytest.param(case, marks=[] if case in chosen else [mark]) for case in cases]
