"""Tables in CSV: fields between delimiters, under a heading or without one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from npformer.core.support.shared_change import SharedChange
from npformer.data.headings import distinct_names, has_no_heading, names_of_places

large_fields = SharedChange(lambda: csv.field_size_limit(2**31 - 1), csv.field_size_limit)
"""``with large_fields():`` lets a field hold a whole book; the limit is that of the module."""


class CsvTable(NamedTuple):
    """Columns, the line in which each row begins, and whether the file has a heading."""

    columns: dict[str, list[Any]]
    lines: list[int]
    has_heading: bool


class _Rows(NamedTuple):
    rows: list[list[str]]
    lines: list[int]


def read_csv_table(path: Path, text: str) -> CsvTable:
    """Return the columns of a table."""
    excel = re.match(r"sep=(.)(?:\r\n?|\n)", text)
    if excel:  # its row is empty now
        text = text[excel.end() - 1 :]
    first = next(io.StringIO(text[bool(excel) :], newline=""), "")  # "\r" alone may end a line
    if not first.strip():
        what = f"{path} {'has no heading' if first else 'is empty'}"
        raise ValueError(f"{what}; expected the names of the columns, and rows")
    rows, lines = _rows(path, text, excel[1] if excel else _delimiter(path, first))
    if has_no_heading(path, rows):
        names = names_of_places(len(rows[0]))
        return CsvTable(dict(zip(names, _columns(rows), strict=True)), lines, has_heading=False)
    names = distinct_names(path, rows[0])
    columns = dict(zip(names, _columns(rows[1:]), strict=False))  # none without rows
    unnamed = [name for name, word in zip(names, rows[0], strict=True) if not word.strip()]
    if len(unnamed) < len(names):
        for name in unnamed:
            if not any(columns.get(name, ())):  # what a delimiter at the end of each line makes
                columns.pop(name, None)
    return CsvTable(columns, lines[1:], has_heading=True)


def _columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [*map(list, zip(*rows, strict=True))]


def _delimiter(path: Path, heading: str) -> str:
    tabs = any(suffix.lower() in (".tsv", ".tab") for suffix in path.suffixes)
    # The first of equals, so a comma if there is none.
    return "\t" if tabs else max(",;\t|", key=re.sub('"[^"]*"', "", heading).count)


def _rows(path: Path, text: str, delimiter: str) -> _Rows:
    """Return the rows that are not empty, all equally long, and the line in which each begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    ended = 0  # the line in which the last row ended
    try:
        with large_fields():
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(ended + 1)
                ended = reader.line_num
    except csv.Error as error:
        _check_widths(path, text, rows, lines, delimiter)  # a fault in an earlier line
        raise _error(path, text, error, ended + 1, reader.line_num) from None
    rows = _without_end(rows)
    _check_widths(path, text, rows, lines, delimiter)
    return _Rows(rows, lines)


def _without_end(rows: list[list[str]]) -> list[list[str]]:
    """Return rows without the empty field that a delimiter at their end makes, if all have one.

    A heading may have it as well, and then stays as it is. Where columns at the end have no names,
    rows may end before them.
    """
    width = len(rows[0])
    if len(rows) > 1 and all(len(row) == width + 1 and not row[-1] for row in rows[1:]):
        return [rows[0], *(row[:-1] for row in rows[1:])]
    named = max((i for i, word in enumerate(rows[0], start=1) if word.strip()), default=width)
    return [row + [""] * (width - len(row)) if len(row) >= named else row for row in rows]


def _check_widths(
    path: Path, text: str, rows: list[list[str]], lines: list[int], delimiter: str
) -> None:
    """Raise ValueError for the first row that has another number of fields than the heading."""
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows[0]):
            advice = f"Put fields that hold a {delimiter!r} or a line break in double quotes"
            raise ValueError(
                f"{path}: line {line} has {len(row)} fields and the heading {len(rows[0])}; "
                f"expected the same number. {_backslash(text, line, line) or advice}"
            )


def _error(path: Path, text: str, error: csv.Error, first: int, last: int) -> ValueError:
    """Return the error for a row, in some lines, of which the quotation marks do not pair up."""
    advice = _backslash(text, first, last)
    if "unexpected end of data" in str(error):
        rule = 'A mark that belongs to the text is written twice, "", in a field in quotation marks'
        return ValueError(
            f"{path}: a quotation mark that opens in line {first} is never closed; expected one "
            f"at the end of the field, too. {advice or rule}"
        )
    return ValueError(f"{path}: line {last}: {error}{advice and f'. {advice}'}")


def _backslash(text: str, first: int, last: int) -> str:
    r"""Return what to do about marks that are written \" in some lines; "" if there are none."""
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        if first <= number <= last and '\\"' in line:
            return (
                f'Line {number} has \\", a quotation mark escaped by a backslash; in CSV it is '
                'written twice, "". With pandas: '
                "read_csv(old, escapechar='\\\\').to_csv(new, index=False)"
            )
    return ""
