"""Names of a table's columns: from its heading, or by position if it has none."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npformer.data.cells import parse_number

NAMES_OF_LABELS = ("label", "labels", "class", "target", "y")
"""Names of a label column, in upper or lower case: a first row that has one is a heading."""

FIRST, LAST = "first", "last"
"""Names of the outer columns of a table without a heading; one of them may hold labels."""


def distinct_names(path: Path, heading: Sequence[str]) -> list[str]:
    """Return different names for the columns: a repeated name gets the column number appended.

    Repeated names are no error here, because the columns may never be used.
    """
    names = [name.strip() for name in heading]
    counts = Counter(names)
    distinct = [
        name if counts[name] == 1 else f"{name}{_place(number)}".lstrip()
        for number, name in enumerate(names, start=1)
    ]
    repeated = [name for name, n in Counter(distinct).items() if n > 1]
    if repeated:
        raise ValueError(
            f"{path} has several columns named {repeated[0]!r}; expected different names"
        )
    return distinct


def _place(number: int | str) -> str:
    return f" (column {number})"


def columns_named(columns: Sequence[str], name: str) -> list[str]:
    """Return the numbered names of the columns that share a name in the heading."""
    start = _place("").rstrip(")")
    return [column for column in columns if column.startswith(f"{name}{start}".lstrip())]


def position_names(n: int) -> list[str]:
    """Return names for the columns of a table without a heading; the inner ones are steps."""
    return [FIRST, *(f"t{i}" for i in range(1, n - 1)), LAST]


def has_no_heading(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the rows of a table are series and the first row has values, not names.

    All values but the label are numbers. The label is first in the UCR archive, for instance, and
    last in others.
    """
    numbers: list[list[Any]] = [[parse_number(word) for word in row] for row in rows[:2]]
    if len(numbers) < 2 or len(numbers[0]) < 2:
        return False
    for outer, inner in ((0, slice(1, None)), (-1, slice(None, -1))):
        if not any(None in row[inner] for row in numbers):
            return _is_label_and_values(path, rows, numbers[0], outer, inner)
    return False


def _is_label_and_values(
    path: Path, rows: Sequence[Sequence[str]], numbers: list[Any], outer: int, inner: slice
) -> bool:
    """Return whether the first row is a label and values; ValueError if it may be names as well.

    `numbers` are its fields as numbers. The fields in `inner` are numbers; the one at `outer` may
    be a word.
    """
    word, (first, *values) = rows[0][outer], numbers[inner]
    is_number = numbers[outer] is not None
    if first != first or not (is_number or values):
        return False
    counts_up = values == [first + i for i in range(1, len(values) + 1)]  # years, or steps
    if word in [row[outer] for row in rows[1:]]:
        return True
    if not is_number and word.strip().casefold() in NAMES_OF_LABELS:
        return False
    if counts_up and not (is_number and values and numbers[outer] + 1 != first):
        raise ValueError(
            f"{path}: line 1 may be the names of the columns, or a label and values; expected "
            "names first, such as label,t0,t1"
        )
    return True
