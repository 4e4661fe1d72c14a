"""Table: columns of text from a CSV, TSV, JSON lines or Parquet file."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.core import a_type, checks
from npformer.core.support.words import did_you_mean
from npformer.data.cells import as_number
from npformer.data.text_file import check_file, decoded, named

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".parquet": "parquet",
}
"""The kind of a file by its suffix; ``.gz`` may follow that of a text file."""

NAMES_OF_LABELS = ("label", "labels", "class", "target", "y")
"""Names of a column of labels, in any case, by which a first row is known as a heading."""


@dataclass
class Table:
    """Rows of a file, by column.

    Parameters
    ----------
    path : Path
        For messages.
    columns : dict of str to list
        All equally long.
    lines : list of int, optional
        The line of the file in which each row begins; None if the file has no lines.
    """

    path: Path
    columns: dict[str, list[Any]]
    lines: list[int] | None = None

    def __post_init__(self) -> None:
        if len(self) == 0:
            raise ValueError(f"{self.path} has no rows; expected at least one below its heading")

    def place(self, row: int) -> str:
        """Return where a row is, for messages: its line, as an editor shows it."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), []))

    def names(self) -> str:
        """Return the names of the first columns, for messages."""
        shown = ", ".join(map(repr, [*self.columns][:12]))
        return f"{shown} and {n - 12} more" if (n := len(self.columns)) > 12 else shown

    def column(self, name: str) -> list[Any]:
        """Return a column; for an unknown name, ValueError lists the known ones."""
        if not isinstance(name, str) or name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise ValueError(f"{self.path} has no column {name!r}; it has {self.names()}{hint}")
        return self.columns[name]

    def texts(self, name: str, missing: str | None = None) -> list[str]:
        """Return a column of strings; numbers are written out.

        `missing` replaces missing values, which are an error if it is None.
        """
        return [self._text(i, name, value, missing) for i, value in enumerate(self.column(name))]

    def _text(self, row: int, name: str, value: Any, missing: str | None) -> str:
        """Return a value of a column as a text, checked."""
        if not isinstance(value, str) and isinstance(value, Iterable):
            raise ValueError(
                f"{self.path}: {self.place(row)} has {a_type(value)} in the column {name!r}; "
                "expected a text or a number in every row"
            )
        if value is None or value != value:
            if missing is None:
                raise ValueError(
                    f"{self.path}: {self.place(row)} has no {name!r}; expected a value in every "
                    "row. Complete it or remove the row"
                )
            value = missing
        text = str(value)
        if not text.isascii() and re.search(r"[\ud800-\udfff]", text):
            raise ValueError(
                f"{self.path}: {self.place(row)} has half of a character in the column {name!r}: "
                f"{text[:40]!a}; expected whole ones. Write it again in UTF-8"
            )
        return text

    def words(self, name: str, wanted: str, missing: Sequence[str] = ("",)) -> list[str]:
        """Return a column of texts without the spaces around them, none of which may be missing."""
        words = [text.strip() for text in self.texts(name)]
        for i, word in enumerate(words):
            if word.casefold() in missing:
                what = f"{word!r} for" if word else "no"
                raise ValueError(
                    f"{self.path}: {self.place(i)} has {what} {name!r}; expected in every row "
                    f"{wanted}. Complete it or remove the row"
                )
        return words


def kind_of(path: Path) -> str | None:
    """Return "csv", "json" or "parquet" by a file's suffix; None for any other."""
    unpacked = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return SUFFIXES.get(unpacked.suffix.lower())


def read_table(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        CSV with a heading (comma, semicolon, tab or | between fields), TSV, JSON (an object in each
        line, or a list of objects), each also with ``.gz``; or Parquet, with pyarrow.
        "-" is CSV or JSON from standard input. Without a heading, rows of numbers are series: a
        label, and a value for each step.
    encoding : str
        Of text files. A byte order mark says it for those in UTF-8 and UTF-16.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        There is no such file; it is empty, broken or in another encoding: the message names the
        line; or Parquet cannot be read here.
    """
    place = checks.path("path", path)
    kind = "csv" if str(place) == "-" else kind_of(place)
    if kind is None and not place.is_dir():
        sheet = place.suffix.lower() in (".xlsx", ".xls", ".ods")
        hint = ". In Excel or LibreOffice: save as CSV UTF-8" if sheet else ""
        raise ValueError(
            f"{place} ends in {place.suffix!r}; expected {', '.join(SUFFIXES)}, also with .gz{hint}"
        )
    if kind != "parquet":
        text = decoded(place, encoding)
        if str(place) == "-" and text.lstrip().startswith(("[", "{")):
            kind = "json"
        place = Path(named(place))
        return _read_csv(place, text) if kind == "csv" else _read_json(place, text)
    check_file(place)
    return _read_parquet(place)


def _read_csv(path: Path, text: str) -> Table:
    if excel := re.match(r"sep=.\r?\n", text):  # what stands between fields; its row is empty now
        text = text[excel.end() - 1 :]
    first = next(io.StringIO(text[bool(excel) :], newline=""), "")  # "\r" alone may end a line
    if not first.strip():
        what = f"{path} {'has no heading' if first else 'is empty'}"
        raise ValueError(f"{what}; expected the names of the columns, and rows")
    delimiter = _delimiter(path, first)
    # A field may hold a whole book; the limit is the module's, so it is restored.
    limit = csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, rows, ended = [], [], 0  # the line in which the last row ended
    try:
        for row in reader:
            begun, ended = ended + 1, reader.line_num
            if not row:
                continue
            lines.append(begun)
            rows.append(row)
            if len(row) != len(rows[0]):
                raise ValueError(
                    f"{path}: line {begun} has {len(row)} fields and the heading "
                    f"{len(rows[0])}; expected the same number. Put fields that hold a "
                    f"{delimiter!r} or a line break in double quotes"
                )
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise ValueError(
                f"{path}: a quotation mark that opens in line {ended + 1} is never closed; "
                "expected one at the end of the field, too. A mark that belongs to the "
                'text is written twice, "", in a field in quotation marks'
            ) from None
        raise ValueError(f"{path}: line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)
    names = steps_without_heading(path, rows)
    if names is None:
        names = [name.strip() for name in rows.pop(0)]
        del lines[0]
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            raise ValueError(
                f"{path} has several columns named {twice[0]!r}; expected different names"
            )
    columns = map(list, zip(*rows, strict=True))  # none without rows, which `Table` refuses
    return Table(path, dict(zip(names, columns, strict=False)), lines)


def _delimiter(path: Path, heading: str) -> str:
    tabs = any(suffix.lower() in (".tsv", ".tab") for suffix in path.suffixes)
    # The first of equals, so a comma if there is none.
    return "\t" if tabs else max(",;\t|", key=re.sub('"[^"]*"', "", heading).count)


def _read_json(path: Path, text: str) -> Table:
    """Return a table of objects: one in each line, or all in one list."""
    lines: list[int] | None = None
    one_in_each_line = bool({".jsonl", ".ndjson"} & {*path.suffixes[-2:]})
    if not one_in_each_line and text.lstrip().startswith("["):
        rows = _parsed(path, "", text)
    else:
        lines, rows = _parsed_lines(path, text)
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            place = f"row {i + 1}" if lines is None else f"line {lines[i]}"
            raise ValueError(
                f"{path}: {place} is {a_type(row)}; expected an object such as "
                '{"text": "...", "label": "..."} in each line, or a list of them'
            )
    names = dict.fromkeys(name for row in rows for name in row)
    return Table(path, {name: [row.get(name) for row in rows] for name in names}, lines)


def _parsed_lines(path: Path, text: str) -> tuple[list[int], list[Any]]:
    """Return the numbers of the lines that are not empty, and the value in each of them."""
    numbers, values = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            numbers.append(number)
            values.append(_parsed(path, f": line {number}", line))
    return numbers, values


def _parsed(path: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_record)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}{where} is not JSON that can be read: {error}") from None


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has several values for {name!r}")
    return record


def steps_without_heading(path: Path, rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Return names for the columns of series in rows, if the first row has values, not names.

    In the UCR archive, for instance, a row has a label and then the values.
    """
    numbers: list[list[Any]] = [[as_number(word) for word in row] for row in rows[:2]]
    if len(numbers) < 2 or len(numbers[0]) < 2 or any(None in row[1:] for row in numbers):
        return None
    label, first, *values = numbers[0]
    if first != first or (label is None and not values):
        return None
    name = rows[0][0]
    count_up = values == [first + i for i in range(1, len(values) + 1)]  # years, or steps
    if count_up and name not in [row[0] for row in rows[1:]]:
        if name.strip().casefold() in NAMES_OF_LABELS:
            return None
        _check_is_label(path, label, first, values)
    return ["label", *(f"t{i}" for i in range(len(values) + 1))]


def _check_is_label(path: Path, label: float | None, first: float, values: list[Any]) -> None:
    """Check that numbers in the first row that count up cannot be the names of the columns."""
    if label is None or label + 1 == first or not values:
        raise ValueError(
            f"{path}: line 1 may be the names of the columns, or a label and values; expected "
            "names first, such as label,t0,t1"
        )


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow.parquet import read_table
    except ImportError as error:
        raise ImportError(
            f"{path} is a Parquet file, which pyarrow reads; it is not installed: python -m pip "
            "install pyarrow"
        ) from error
    try:
        columns = read_table(path).to_pydict()
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from None
    return Table(path, columns)
