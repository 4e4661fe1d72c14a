"""Lists that users pass: of texts, labels, names of columns or token ids."""

from collections.abc import Iterable
from typing import Any

from npformer.core import a_type, checks


def listed(name: str, value: Any, entries: str, axes: tuple[int, ...] = (1,)) -> list[Any]:
    """Return what is in a list, or in anything else that has an order; an array has some `axes`.

    `entries` says for the error what belongs into it: "a label for each sample".
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        alone = f". For a single one write [{name}]" if isinstance(value, str) else ""
        raise TypeError(f"{name} is {a_type(value)}; expected a list with {entries}{alone}")
    checks.ordered(name, value)
    if (found := getattr(value, "ndim", 1)) not in axes:
        raise ValueError(
            f"{name} has {found} axes; expected one, with {entries}. Choose the column of a table, "
            "such as table['text']"
        )
    return list(value)
