"""Table: columns of text from a CSV, TSV, JSON lines or Parquet file."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from npformer.core import a_type, checks
from npformer.data.text_file import check_file, open_text

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
"""The kind of a file by its suffix; ``.gz`` may follow that of a text file."""


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

    def __init__(
        self, path: Path, columns: dict[str, list[Any]], lines: list[int] | None = None
    ) -> None:
        self.path = path
        self.columns = columns
        self.lines = lines

    def place(self, row: int) -> str:
        """Return where a row is, for messages: its line, as an editor shows it."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), []))

    def column(self, name: str) -> list[Any]:
        """Return a column; for an unknown name, ValueError lists the known ones."""
        if name not in self.columns:
            hint = checks.did_you_mean(name, self.columns)
            raise ValueError(
                f"{self.path} has no column {name!r}; it has {_quote(list(self.columns))}{hint}"
            )
        return self.columns[name]

    def texts(self, name: str, missing: str | None = None) -> list[str]:
        """Return a column of strings; numbers are written out.

        `missing` replaces missing values, which are an error if it is None.
        """
        found = list(self.column(name))
        for i, value in enumerate(found):
            if value is None or value != value:
                if missing is not None:
                    found[i] = missing
                    continue
                raise ValueError(
                    f"{self.path}: {self.place(i)} has no {name!r}; expected a value in every row. "
                    "Complete it or remove the row"
                )
        return [value if isinstance(value, str) else str(value) for value in found]


def kind_of(path: Path) -> str | None:
    """Return "csv", "json" or "parquet" by a file's suffix; None for any other."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def read_table(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        CSV with a heading (comma, semicolon or tab between fields), TSV, JSON lines (one object per
        line), each also with ``.gz``; or Parquet, with pandas or pyarrow. "-" is CSV from
        standard input.
    encoding : str
        Of text files. A byte order mark of UTF-8 is skipped.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        There is no such file; it is empty, broken or in another encoding: the message names the
        line; or Parquet cannot be read here.
    """
    place = checks.path("path", path)
    if str(place) == "-":
        return _read_csv(place, sys.stdin)
    kind = kind_of(place)
    if kind is None and not place.is_dir():
        sheet = place.suffix.lower() in (".xlsx", ".xls", ".ods")
        hint = ". In Excel or LibreOffice: save as CSV UTF-8" if sheet else ""
        raise ValueError(
            f"{place} ends in {place.suffix!r}; expected {', '.join(SUFFIXES)}, also with .gz{hint}"
        )
    check_file(place)
    if kind == "parquet":
        return _read_parquet(place)
    with open_text(place, encoding) as file:
        return _read_csv(place, file) if kind == "csv" else _read_json(place, file)


def _read_csv(path: Path, file: IO[str]) -> Table:
    # A field may hold a whole book; the limit is the module's, so it is restored.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        first = file.readline()
        if not first:
            raise ValueError(f"{path} is empty; expected the names of the columns, and rows")
        if not first.strip():
            raise ValueError(f"{path} has no heading; expected the names of the columns first")
        delimiter = _delimiter(path, first)
        heading = next(csv.reader([first], delimiter=delimiter))
        names = [name.strip() for name in heading]
        _check_names(path, names)
        columns: list[list[str]] = [[] for _ in names]
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        lines, ended = [], 1  # the line in which the last row ended; the first is the heading
        for row in reader:
            begun, ended = ended + 1, reader.line_num + 1
            if not row:
                continue
            lines.append(begun)
            if len(row) != len(names):
                raise ValueError(
                    f"{path}: line {begun} has {len(row)} fields and the heading "
                    f"{len(names)}; expected the same number. Put fields that hold a {delimiter!r} "
                    "or a line break in double quotes"
                )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise ValueError(
                f"{path}: a quotation mark that opens in line {ended + 1} is never closed; "
                "expected one at the end of the field, too. A mark that belongs to the "
                'text is written twice, "", in a field in quotation marks'
            ) from None
        raise ValueError(f"{path}: line {reader.line_num + 1}: {error}") from None
    finally:
        csv.field_size_limit(limit)
    return _check_rows(Table(path, dict(zip(names, columns, strict=True)), lines))


def _delimiter(path: Path, heading: str) -> str:
    if any(suffix.lower() in (".tsv", ".tab") for suffix in path.suffixes):
        return "\t"
    counts = {sign: heading.count(sign) for sign in ",;\t"}
    return max(counts, key=counts.__getitem__)  # the first of equals, so a comma if there is none


def _read_json(path: Path, file: IO[str]) -> Table:
    rows: list[dict[str, Any]] = []
    lines = []
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}: line {number} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}: line {number} is {a_type(row)}; expected an object such as "
                '{"text": "...", "label": "..."} on each line'
            )
        rows.append(row)
        lines.append(number)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _check_rows(
        Table(path, {name: [row.get(name) for row in rows] for name in names}, lines)
    )


def _read_parquet(path: Path) -> Table:
    try:
        columns = _parquet_columns(path)
    except ImportError as error:
        raise ImportError(
            f"{path} is a Parquet file, which pyarrow reads, or pandas with another library; none "
            "is installed: python -m pip install pyarrow"
        ) from error
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(f"{path} is not a Parquet file: {error}") from None
    return _check_rows(Table(path, columns))


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow.parquet import read_table
    except ImportError:
        from pandas import read_parquet

        frame = read_parquet(path)
        return {str(name): frame[name].tolist() for name in frame}
    found: dict[str, list[Any]] = read_table(path).to_pydict()
    return found


def _check_rows(table: Table) -> Table:
    if len(table) == 0:
        raise ValueError(f"{table.path} has no rows; expected at least one below its heading")
    return table


def _check_names(path: Path, names: Sequence[str]) -> None:
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{path} has several columns named {twice[0]!r}; expected different names")


def _quote(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown
