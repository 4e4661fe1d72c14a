"""Check lists that users pass: texts, labels, names of columns or token ids."""

from collections.abc import Iterable
from typing import Any

from npformer.core import a_type, checks


def check_list(name: str, value: Any, entries: str, axes: tuple[int, ...] = (1,)) -> list[Any]:
    """Return the entries of a list, or of any other ordered iterable, after checking its type.

    `entries` describes them in messages, such as "a label for each sample". An array may have any
    of the numbers of axes in `axes`.
    """
    n_axes = len(getattr(value, "shape", (0,)))  # frames of polars and pyarrow have no ndim
    if n_axes not in axes:
        raise ValueError(
            f"{name} has {n_axes} axes; expected one, with {entries}. Choose the column of a "
            "table, such as table['text']"
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        hint = f". For a single one write [{name}]" if isinstance(value, str) else ""
        raise TypeError(f"{name} is {a_type(value)}; expected a list with {entries}{hint}")
    checks.ordered(name, value)
    return list(plain(value))


def plain(values: Any) -> Any:
    """Return a column of pyarrow, whose entries are objects of its own, as a list of Python's."""
    if hasattr(values, "to_pylist") and not hasattr(values, "columns"):
        return values.to_pylist()
    return values
