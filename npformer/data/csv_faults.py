"""Faults of a CSV table, all of them in one message: where each is, and how it is repaired."""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from npformer.data.cells import parse_number
from npformer.data.csv_repairs import (
    BACKSLASH,
    MARK,
    Layout,
    Repair,
    is_right,
    marked_fields,
    repair,
    strict_fields,
)
from npformer.data.headings import position_names

MOST_SHOWN = 5
"""Faults that a message shows; it counts the others."""

MOST_FAULTS = 1000
"""Faults after which the search ends: another delimiter makes every row wrong."""

MOST_LINES = 50
"""Lines that a row with a fault may have: a mark that is never closed would take them all."""

LARGE_SHARE = 0.8
"""Of the rows: if so many have one more field than the heading, the heading lacks a name."""

LONGEST_LINE = 120
"""Characters of a repaired line that a message shows, around what changes."""

N_EXAMPLES = 100
"""Lines below the heading that show which column holds the texts."""


class Fault(NamedTuple):
    """What is wrong with a line, counted from 1, and the line as it should be; "" if unknown."""

    line: int
    problem: str
    repaired: str = ""


def fault_error(path: Path, text: str, delimiter: str) -> ValueError:
    """Return the error for a table that cannot be read: it lists the faults.

    Parameters
    ----------
    path : Path
        For the message.
    text : str
        The file, with its line breaks.
    delimiter : str
        Between fields.
    """
    search = FaultSearch(text, delimiter)
    faults = search.faults()
    width = search.layout.width
    names_are_known = width == len(search.names) <= 4
    listed = f" ({', '.join(search.names)})" if names_are_known else ""
    message = (
        f"{path}: {count(len(faults), 'line')} cannot be read; expected {count(width, 'field')} "
        f"in each{listed}, with {delimiter!r} between them"
    )
    for fault in faults[:MOST_SHOWN]:
        message += f"\n  line {fault.line} {fault.problem}"
        if fault.repaired:
            message += f":\n    {fault.repaired}"
    if any(BACKSLASH in fault.problem for fault in faults):
        message += (
            "\n  all backslashes at once, with pandas: "
            "read_csv(old, escapechar='\\\\').to_csv(new, index=False)"
        )
    if len(faults) > MOST_SHOWN:
        least = "at least " if len(faults) >= MOST_FAULTS else ""
        message += f"\n  and {least}{len(faults) - MOST_SHOWN:,} more"
    return ValueError(message)


def count(n: int, thing: str) -> str:
    """Return "1 field" or "2 fields"."""
    return f"{n:,} {thing}{'s' * (n != 1)}"


class FaultSearch:
    """The search for faults: it goes on behind each, where the next row most likely begins.

    Parameters
    ----------
    text : str
        The file, with its line breaks.
    delimiter : str
        Between fields.
    """

    def __init__(self, text: str, delimiter: str) -> None:
        self.text = text
        self.lines: list[str] = [*io.StringIO(text, newline="")]
        self.starts = [0, *accumulate(map(len, self.lines))]
        self.first = next(i for i, line in enumerate(self.lines) if line.strip())
        heading = self._row(self.first, self.first + 1)
        fields = strict_fields(heading, delimiter)
        self.names = fields or heading.split(delimiter)
        self.reference = "the heading"
        n_numbers = sum(bool(name) and parse_number(name) is not None for name in self.names)
        if len(self.names) > 1 and n_numbers >= len(self.names) - 1:
            self.names = position_names(len(self.names))
            self.reference = f"line {self.first + 1}"
        named = [i for i, name in enumerate(self.names, start=1) if name.strip()]
        width = len(self.names)
        layout = Layout(delimiter, width, max(named, default=width))
        self.layout = layout._replace(text_column=self._text_column(layout))
        self.widths: Counter[int] = Counter()  # rows, by their number of fields

    def _row(self, start: int, stop: int) -> str:
        """Return some lines without the line break at their end."""
        return self.text[self.starts[start] : self.starts[stop]].rstrip("\r\n")

    def _text_column(self, layout: Layout) -> int | None:
        """Return the column with the longest texts; None if no field has two words."""
        if self.reference != "the heading":
            return None
        lengths = [0] * layout.width
        stop = min(self.first + 1 + N_EXAMPLES, len(self.lines))
        for i in range(self.first + 1, stop):
            row = self._row(i, i + 1)
            if is_right(row, layout):
                for column, word in enumerate(strict_fields(row, layout.delimiter) or ()):
                    is_text = any(map(str.isalpha, word)) and any(map(str.isspace, word.strip()))
                    lengths[column] += len(word) * is_text
        return lengths.index(max(lengths)) if any(lengths) else None

    def faults(self) -> list[Fault]:
        """Return the faults, in the order of the lines."""
        faults = self._faults_of_rows()
        n_fields, n_rows = max(self.widths.items(), key=lambda item: item[1], default=(0, 0))
        is_usual = n_rows >= max(3, LARGE_SHARE * self.widths.total())
        if not is_usual or self.layout.fits(n_fields):
            return faults
        of_heading = Fault(
            self.first + 1,
            f"has {count(len(self.names), 'field')} and {n_rows:,} of {self.widths.total():,} rows "
            f"{n_fields}; expected a name for each column, or quotation marks around fields that "
            f"hold a {self.layout.delimiter!r}",
        )
        self.layout = Layout(self.layout.delimiter, n_fields, n_fields)
        return [of_heading, *self._faults_of_rows()]

    def _faults_of_rows(self) -> list[Fault]:
        faults: list[Fault] = []
        start = self.first + (not self.layout.fits(len(self.names)))
        while start < len(self.lines) and len(faults) < MOST_FAULTS:
            fault, start = self._next_fault(start)
            if fault is not None:
                faults.append(fault)
        return faults

    def _next_fault(self, start: int) -> tuple[Fault | None, int]:
        """Return the next fault from a line on, and the line at which the search goes on."""
        rows = csv.reader(
            map(self.lines.__getitem__, range(start, len(self.lines))),
            delimiter=self.layout.delimiter,
            strict=True,
        )
        first = start
        try:
            for row in rows:
                stop = start + rows.line_num
                if row and first > self.first:  # not the heading
                    self.widths[len(row)] += 1
                if row and not self.layout.fits(len(row)):
                    return self._fault_of_width(first, stop, len(row))
                first = stop
        except csv.Error:
            return self._fault_of_marks(first)
        return None, len(self.lines)

    # Rows of another width ------------------------------------------------------------------------

    def _fault_of_width(self, first: int, stop: int, n_fields: int) -> tuple[Fault, int]:
        """Return the fault of a row that can be read, and has too few or too many fields."""
        if stop > first + 1 and (swallowed := self._fault_before_a_row(first)):
            return swallowed, first + 1
        row = self._row(first, stop)
        counts = f"has {count(n_fields, 'field')} and {self.reference} {self.layout.width}"
        mended = repair(row, self.layout)
        if mended is not None:
            return self._fault(first, row, mended, counts), stop
        if n_fields > self.layout.width:
            advice = (
                f"expected the same number. A field that holds a {self.layout.delimiter!r} or a "
                "line break stands in double quotes"
            )
            return Fault(first + 1, f"{counts}; {advice}"), stop
        return self._fault_of_missing_fields(stop, row, counts, n_fields), stop

    def _fault_of_missing_fields(self, stop: int, row: str, counts: str, n_fields: int) -> Fault:
        missing = self.names[n_fields:]
        if not missing or len(missing) > 3:
            return Fault(stop, f"{counts}; expected the same number")
        problem = f"{counts}; expected {' and '.join(map(repr, missing))}, too"
        if self.reference == "the heading":
            problem += (
                ". Write it, remove the line, or pass --skip-empty, which leaves out texts without "
                "a label"
            )
        if self.layout.text_column is not None and MARK not in row:
            problem += ". If a text goes on in the next line, put it in quotation marks"
        last_line = _lines_of(row)[-1]
        places = "".join(f"{self.layout.delimiter}<{name}>" for name in missing)
        return Fault(stop, problem, f"{_cut(last_line, len(last_line))}{places}")

    # Rows whose quotation marks do not pair -------------------------------------------------------

    def _fault_of_marks(self, first: int) -> tuple[Fault, int]:
        """Return the fault of a row whose quotation marks do not pair."""
        stop = min(first + MOST_LINES, len(self.lines))
        if first == self.first:
            return self._fault_of_heading(), len(self.lines)
        of_line = self._fault_before_a_row(first)
        if of_line is not None:
            return of_line, first + 1
        fields_and_end = marked_fields(
            self.text, self.starts[first], self.starts[stop], self.layout.delimiter
        )
        if fields_and_end is not None:
            end = fields_and_end[1]
            stop = next(i for i in range(first + 1, stop + 1) if self.starts[i] >= end)
            row = self._row(first, stop)
            mended = repair(row, self.layout)
            begins_anew = any(map(self._opens_a_field, range(first + 1, stop)))
            if mended is not None and not begins_anew:
                return self._fault(first, row, mended, ""), stop
        problem = (
            "has a quotation mark that opens a field and is never closed; expected one at the end "
            'of the field, too. A mark that belongs to the text is written twice, ""'
        )
        return Fault(first + 1, problem), first + 1

    def _fault_before_a_row(self, first: int) -> Fault | None:
        """Return the fault of a single line, if it can be repaired and the next line is a row."""
        row = self._row(first, first + 1)
        mended = repair(row, self.layout)
        if mended is None:
            return None
        if first + 1 < len(self.lines) and not self._is_row(first + 1):
            return None
        return self._fault(first, row, mended, "")

    def _is_row(self, line: int) -> bool:
        """Return whether a line alone is a row, or can be repaired to be one."""
        row = self._row(line, line + 1)
        return not row or is_right(row, self.layout) or repair(row, self.layout) is not None

    def _opens_a_field(self, line: int) -> bool:
        """Return whether a line begins with a quotation mark and a word: most likely a new row."""
        words = self.lines[line]
        return words.startswith(MARK) and words[1:2].isalnum()

    def _fault_of_heading(self) -> Fault:
        problem = (
            "has quotation marks that do not pair; expected the names of the columns. A name that "
            "begins with a mark ends with one"
        )
        return Fault(self.first + 1, problem)

    def _fault(self, first: int, row: str, mended: Repair, counts: str) -> Fault:
        """Return the fault of a row that can be repaired: in the first line that changes."""
        before = _lines_of(row)
        after = _lines_of(mended.row)
        i = next(i for i, line in enumerate(before) if line != after[i])
        position = bisect_left(
            range(len(before[i])), True, key=lambda k: before[i][: k + 1] != after[i][: k + 1]
        )
        problem = mended.problem.format(counts=counts, delimiter=self.layout.delimiter)
        return Fault(first + i + 1, problem, _cut(after[i], position))


def _lines_of(row: str) -> list[str]:
    r"""Return the lines of a row as editors count them: a text may hold other breaks, as \v."""
    return re.split("\r\n?|\n", row)


def _cut(line: str, position: int) -> str:
    """Return what a message shows of a line: the characters around a position."""
    start = max(0, min(position - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    stop = start + LONGEST_LINE
    return f"{'…' * (start > 0)}{line[start:stop]}{'…' * (stop < len(line))}"
