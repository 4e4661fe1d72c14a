"""Which cases of a list run by default: the others get a mark that pyproject.toml leaves out."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def mark_others(
    chosen: Sequence[Any], cases: Iterable[Any], mark: pytest.MarkDecorator = pytest.mark.slow
) -> list[Any]:
    """Return cases for `parametrize`, of which all that are not chosen have a mark.

    A case for several arguments is a tuple.
    """
    cases = list(cases)
    missing = [case for case in chosen if case not in cases]
    assert not missing, f"cases that are chosen are gone: {missing}"
    marked = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marked.append(pytest.param(*values, marks=[] if case in chosen else [mark]))
    return marked
