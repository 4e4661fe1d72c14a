"""Rows of a table with an empty column: left out, or an error."""

from collections.abc import Sequence

from npformer.data.tables import Table
from npformer.tasks.sources import data_warnings


def full_rows(
    table: Table,
    roles: Sequence[str],
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    *,
    skip_empty: bool,
) -> list[int]:
    """Return the rows of which no column is empty; ValueError for others, unless `skip_empty`.

    `roles` and `names` say what each of the `columns` is for, and what it is called.
    """
    gaps = [[i for i, words in enumerate(column) if not words.strip()] for column in columns]
    rows_with_gap = {i for rows in gaps for i in rows}
    rows = [i for i in range(len(table)) if i not in rows_with_gap]
    if not rows_with_gap:
        return rows
    if skip_empty and rows:
        data_warnings.doubt_gaps(len(rows_with_gap), len(table), str(table.path))
        return rows
    first = 0 if gaps[0] else 1
    raise _gap_error(table, roles[first], names[first], gaps[first])


def _gap_error(table: Table, role: str, name: str, empty: list[int]) -> ValueError:
    """Return the error for a column that is empty in some rows."""
    word = table.texts(name, missing="")[empty[0]].strip()
    meaning = f" ({word!r} means none)" if word else ""
    return ValueError(
        f"{table.path}: {len(empty):,} of {len(table):,} {role}s are empty, the first is in "
        f"{table.place(empty[0])}{meaning}; expected words. Fill them in, or leave them out with "
        "--skip-empty"
    )
