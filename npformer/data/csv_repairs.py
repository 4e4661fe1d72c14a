"""How a row of a CSV table is repaired: by the first of several ways that makes a right row.

A row is a text of one line or more, without the line break at its end.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

MARK = '"'
BACKSLASH = 'has \\", a quotation mark escaped by a backslash; in CSV it is written twice, ""'


class Repair(NamedTuple):
    """What is wrong with a row, and the row as it should be."""

    problem: str
    row: str


class Layout(NamedTuple):
    """What rows look like.

    Parameters
    ----------
    delimiter : str
        Between fields.
    width : int
        Number of fields of the heading.
    least_width : int
        Number of fields that a row must have: the last columns may have no name.
    text_column : int, optional
        The column of the texts, to which surplus delimiters belong; None without texts.
    """

    delimiter: str
    width: int
    least_width: int
    text_column: int | None = None

    def fits(self, n_fields: int) -> bool:
        """Return whether a row may have so many fields."""
        return self.least_width <= n_fields <= self.width


def strict_fields(row: str, delimiter: str) -> list[str] | None:
    """Return the fields of a row; None if it is not a whole row of CSV."""
    reader = csv.reader(io.StringIO(row, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = list(reader)
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def is_right(row: str, layout: Layout) -> bool:
    """Return whether a row can be read, and has as many fields as the heading."""
    fields = strict_fields(row, layout.delimiter)
    return fields is not None and layout.fits(len(fields))


def repair(row: str, layout: Layout) -> Repair | None:
    """Return how a wrong row becomes a right one; None if no way does it."""
    for problem, way in WAYS:
        repaired = way(row, layout)
        if repaired != row and is_right(repaired, layout):
            return Repair(problem, repaired)
    return None


def marked_fields(text: str, start: int, end: int, delimiter: str) -> tuple[list[str], int] | None:
    """Return the fields of a row with single marks inside marked fields, and the row's end.

    A mark closes its field only before a delimiter or the end of a line. The row begins at `start`
    and may go on until `end`; None if a field is not closed there.
    """
    pattern = _field(delimiter)
    fields = []
    position = start
    while True:
        match = pattern.match(text, position, end)
        if match is None:
            return None
        fields.append(match[0])
        position = match.end()
        if position == end or text[position] in "\r\n":
            return fields, position
        position += len(delimiter)


def _field(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of a field; `re` keeps it compiled."""
    between = re.escape(delimiter)
    at_end = rf"(?:{between}|[\r\n]|\Z)"
    marked = rf'"(?:[^"]++|"++(?!{at_end}))*+"++'
    plain = rf'(?!")[^{between}\r\n]*'
    return re.compile(f"{marked}|{plain}")


def _double(field: str) -> str:
    """Return a field in marks whose inner marks are written twice, without backslashes."""
    inner = field[1:-1].replace('\\"', MARK)
    inner = re.sub('"+', lambda run: run[0] + MARK * (len(run[0]) % 2), inner)
    return MARK + inner + MARK


# Ways ---------------------------------------------------------------------------------------------


def _remove_spaces_beside_marks(row: str, layout: Layout) -> str:
    delimiter = re.escape(layout.delimiter)
    row = re.sub(rf'({delimiter}|^) +"', rf"\1{MARK}", row)
    return re.sub(rf'" +({delimiter}|$)', rf"{MARK}\1", row)


def _double_inner_marks(row: str, layout: Layout) -> str:
    delimiter = layout.delimiter
    result = marked_fields(row, 0, len(row), delimiter)
    if result is None or result[1] < len(row):
        return row
    fields = [_double(field) if field.startswith(MARK) else field for field in result[0]]
    return delimiter.join(fields)


def _replace_backslashes(row: str, layout: Layout) -> str:
    return row.replace('\\"', '""')


def _close_open_field(row: str, layout: Layout) -> str:
    """Return a row whose open field ends with a mark."""
    words, open_field, rest = _parts_at_marks(row, layout)
    closed = _double(open_field + MARK)
    return layout.delimiter.join([*words, closed, *rest]) if open_field.count(MARK) % 2 else row


def _surround_field(row: str, layout: Layout) -> str:
    """Return a row whose field with text behind its closing mark is a text with marks."""
    words, field, rest = _parts_at_marks(row, layout)
    return layout.delimiter.join([*words, _double(MARK + field + MARK), *rest]) if field else row


def _parts_at_marks(row: str, layout: Layout) -> tuple[list[str], str, list[str]]:
    """Return the fields before the one whose marks do not pair, that field, and those behind it.

    It takes all surplus delimiters; it is "" if no field begins with a mark.
    """
    words = row.split(layout.delimiter)
    marked = [i for i, word in enumerate(words) if word.startswith(MARK)]
    if not marked:
        return words, "", []
    first = next((i for i in marked if _is_open(words[i:], layout)), marked[0])
    n_behind = layout.width - first - 1
    last = max(len(words) - n_behind, first + 1)
    return words[:first], layout.delimiter.join(words[first:last]), words[last:]


def _is_open(words: Sequence[str], layout: Layout) -> bool:
    """Return whether the field with which words begin is not closed in front of a delimiter."""
    return _field(layout.delimiter).match(layout.delimiter.join(words)) is None


def _remove_empty_last_fields(row: str, layout: Layout) -> str:
    delimiter = layout.delimiter
    words = row.split(delimiter)
    while len(words) > layout.width and not words[-1].strip():
        words.pop()
    return delimiter.join(words)


def _surround_text(row: str, layout: Layout) -> str:
    """Return a row whose surplus fields are one with the text, which stands in marks."""
    fields = strict_fields(row, layout.delimiter)
    if fields is None or layout.text_column is None or len(fields) <= layout.width:
        return row
    first = layout.text_column
    last = first + len(fields) - layout.width + 1
    text = layout.delimiter.join(fields[first:last])
    words = io.StringIO(newline="")
    writer = csv.writer(words, delimiter=layout.delimiter, lineterminator="")
    writer.writerow([*fields[:first], text, *fields[last:]])
    return words.getvalue()


WAYS: tuple[tuple[str, Callable[[str, Layout], str]], ...] = (
    ("has a space beside a quotation mark; expected none", _remove_spaces_beside_marks),
    (BACKSLASH, _replace_backslashes),
    (
        'has a quotation mark inside a field in quotation marks; expected it twice, ""',
        _double_inner_marks,
    ),
    (
        "has a quotation mark that opens a field and is never closed; expected one at the end of "
        "the field, too",
        _close_open_field,
    ),
    (
        "has words behind a quotation mark that closes a field; expected {delimiter!r} there, or "
        'marks that belong to the text written twice, "", in a field in quotation marks',
        _surround_field,
    ),
    ("{counts}: it ends in {delimiter!r}; expected none", _remove_empty_last_fields),
    (
        "{counts}; expected quotation marks around a field that holds a {delimiter!r}",
        _surround_text,
    ),
)
"""What is wrong with rows, each with the way that mends it."""
