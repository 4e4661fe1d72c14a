"""Table: columns of text from a CSV, TSV, JSON lines or Parquet file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.core import a_type, checks
from npformer.core.support.words import did_you_mean
from npformer.data.csv_table import read_csv_table
from npformer.data.formats import check_format, check_is_no_page
from npformer.data.headings import distinct_names, of_name
from npformer.data.json_table import read_json_table
from npformer.data.text_file import check_file, decoded, named

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".parquet": "parquet",
}
"""The kind of a file by its suffix; ``.gz`` may follow that of a text file."""

PACKED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")
"""Endings of the names of files in which others are, and which are not read."""


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
    has_heading : bool
        Otherwise columns are named by their places: first, t1, t2, ..., last.
    """

    path: Path
    columns: dict[str, list[Any]]
    lines: list[int] | None = None
    has_heading: bool = True

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
            raise ValueError(f"{self.path} {self._lack(name)}")
        return self.columns[name]

    def _lack(self, name: Any) -> str:
        """Return in words that there is no column of a name, or that there are several."""
        if isinstance(name, str) and (alike := of_name([*self.columns], name)):
            return (
                f"has several columns named {name!r}; expected one. Name it by its place: "
                f"{', '.join(map(repr, alike))}"
            )
        hint = did_you_mean(name, self.columns)
        return f"has no column {name!r}; it has {self.names()}{hint}{self.doubt()}"

    def doubt(self) -> str:
        """Return in words that the first line is a row rather than a heading; "" if it is not."""
        for name, column in self.columns.items():
            if name and name in column:
                place = self.place(column.index(name))
                return (
                    f". Is its first line a row? {name[:40]!r} is in {place} as well. Then write "
                    "the names of the columns before it, such as label,text"
                )
        return ""

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
        line, a list of objects, or a list for each column), each also with ``.gz``; or Parquet,
        with pyarrow. "-" is CSV or JSON from standard input. Without a heading, rows of numbers are
        series: a value for each step, and perhaps a label before or after them.
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
        if place.suffix.lower() in PACKED:
            hint = ". Unpack it, and name the file in it"
        raise ValueError(
            f"{place} ends in {place.suffix!r}; expected {', '.join(SUFFIXES)}, also with .gz{hint}"
        )
    if kind != "parquet":
        text = decoded(place, encoding)
        if str(place) == "-" and text.lstrip().startswith(("[", "{")):
            kind = "json"
        place = Path(named(place))
        check_is_no_page(str(place), text)
        if kind == "json":
            return Table(place, *read_json_table(place, text))
        return Table(place, *read_csv_table(place, text))
    check_file(place)
    return _read_parquet(place)


def _read_parquet(path: Path) -> Table:
    with path.open("rb") as file:
        start = file.read(64)
    if not start.startswith(b"PAR1"):
        check_format(str(path), start, "a Parquet file")
    try:
        from pyarrow.parquet import ParquetFile  # `read_table` refuses names that occur twice
    except ImportError as error:
        raise ImportError(
            f"{path} is a Parquet file, which pyarrow reads; it is not installed: python -m pip "
            "install pyarrow"
        ) from error
    try:
        table = ParquetFile(path).read()
        columns = [column.to_pylist() for column in table.columns]
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from None
    names = distinct_names(path, table.column_names)
    return Table(path, dict(zip(names, columns, strict=True)))
