"""Tables in CSV: fields between delimiters, with or without a heading."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from npformer.core.support.shared_change import SharedChange
from npformer.data.csv_faults import fault_error
from npformer.data.headings import distinct_names, has_no_heading, position_names

large_fields = SharedChange(lambda: csv.field_size_limit(2**31 - 1), csv.field_size_limit)
"""``with large_fields():`` raises the limit of module `csv`: a field can then hold a whole book."""


class CsvTable(NamedTuple):
    """Columns, the line in which each row begins, and whether the file has a heading."""

    columns: dict[str, list[Any]]
    lines: list[int]
    has_heading: bool


class _Rows(NamedTuple):
    rows: list[list[str]]
    lines: list[int]


def read_csv_table(path: Path, text: str, *, fill_short_rows: bool = False) -> CsvTable:
    """Return the columns of a table; with `fill_short_rows`, missing last fields are empty."""
    excel = re.match(r"sep=(.)(?:\r\n?|\n)", text)
    if excel:  # keep only its line break, so that line numbers stay the same
        text = text[excel.end() - 1 :]
    first_line = next(io.StringIO(text[bool(excel) :], newline=""), "")  # a lone "\r" ends it, too
    if not first_line.strip():
        problem = f"{path} {'has no heading' if first_line else 'is empty'}"
        raise ValueError(f"{problem}; expected the names of the columns, and rows")
    delimiter = excel[1] if excel else _delimiter(path, first_line)
    rows, lines = _rows(path, text, delimiter, fill_short_rows=fill_short_rows)
    if has_no_heading(path, rows):
        names = position_names(len(rows[0]))
        return CsvTable(dict(zip(names, _columns(rows), strict=True)), lines, has_heading=False)
    names = distinct_names(path, rows[0])
    columns = dict(zip(names, _columns(rows[1:]), strict=False))  # empty without rows
    unnamed = [name for name, word in zip(names, rows[0], strict=True) if not word.strip()]
    if len(unnamed) < len(names):
        for name in unnamed:
            if not any(columns.get(name, ())):  # made by a delimiter at the end of each line
                columns.pop(name, None)
    return CsvTable(columns, lines[1:], has_heading=True)


def _columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [*map(list, zip(*rows, strict=True))]


def _delimiter(path: Path, heading: str) -> str:
    """Return a tab for .tsv and .tab, else the most frequent delimiter outside quotes."""
    if any(suffix.lower() in (".tsv", ".tab") for suffix in path.suffixes):
        return "\t"
    unquoted = re.sub('"[^"]*"', "", heading)
    return max(",;\t|", key=unquoted.count)  # a tie goes to the first: a comma, if none occurs


def _rows(path: Path, text: str, delimiter: str, *, fill_short_rows: bool) -> _Rows:
    """Return the rows that are not empty, all of equal length, and the line where each begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    last_line = 0  # of the previous row
    try:
        with large_fields():
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(last_line + 1)
                last_line = reader.line_num
    except csv.Error:
        raise _error(path, text, delimiter) from None
    rows = _drop_empty_last_fields(rows)
    width = len(rows[0])
    if fill_short_rows:
        rows = [row + [""] * (width - len(row)) for row in rows]
    if any(len(row) != width for row in rows):
        raise _error(path, text, delimiter)
    return _Rows(rows, lines)


def _error(path: Path, text: str, delimiter: str) -> ValueError:
    with large_fields():
        return fault_error(path, text, delimiter)


def _drop_empty_last_fields(rows: list[list[str]]) -> list[list[str]]:
    """Return rows without the empty field after a trailing delimiter, if every row has one.

    If the heading has that field as well, nothing is removed. Rows may leave out the fields of
    trailing columns without a name.
    """
    width = len(rows[0])
    if len(rows) > 1 and all(len(row) == width + 1 and not row[-1] for row in rows[1:]):
        return [rows[0], *(row[:-1] for row in rows[1:])]
    positions_with_name = [i for i, word in enumerate(rows[0], start=1) if word.strip()]
    least_width = max(positions_with_name, default=width)
    return [row + [""] * (width - len(row)) if len(row) >= least_width else row for row in rows]
