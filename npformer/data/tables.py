"""Table: columns of text from a CSV, TSV, JSON lines or Parquet file, or from fastText's lines."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.core import a_type, checks
from npformer.core.support.wording import did_you_mean
from npformer.data.csv_table import read_csv_table
from npformer.data.fasttext_table import has_fasttext_labels, read_fasttext_table
from npformer.data.formats import check_format, check_is_no_page
from npformer.data.headings import columns_named, distinct_names
from npformer.data.json_table import read_json_table
from npformer.data.text_file import check_file, decode_file, display_name

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".parquet": "parquet",
}
"""The format of a file by its suffix; ``.gz`` may follow the suffix of a text file."""

ARCHIVES = (".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")
"""Suffixes of archives and compressed files, which are not read."""

BEGINNING = 1000
"""Bytes that show whether a file begins with one of fastText's labels."""


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
        Otherwise columns are named by position: first, t1, t2, ..., last.
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
        names = [*self.columns]
        first_names = ", ".join(map(repr, names[:12]))
        if len(names) <= 12:
            return first_names
        return f"{first_names} and {len(names) - 12} more"

    def column(self, name: str) -> list[Any]:
        """Return a column; for an unknown name, ValueError lists the known ones."""
        if not isinstance(name, str) or name not in self.columns:
            raise ValueError(f"{self.path} {self._explain_unknown_column(name)}")
        return self.columns[name]

    def _explain_unknown_column(self, name: Any) -> str:
        """Return a message that no column has a name, or that several columns have it."""
        numbered_names = columns_named([*self.columns], name) if isinstance(name, str) else []
        if numbered_names:
            return (
                f"has several columns named {name!r}; expected one. Name it by its number: "
                f"{', '.join(map(repr, numbered_names))}"
            )
        hint = did_you_mean(name, self.columns)
        return (
            f"has no column {name!r}; it has {self.names()}{hint}{self.hint_at_missing_heading()}"
        )

    def hint_at_missing_heading(self) -> str:
        """Return a hint that the first line may be a row, not a heading; "" if that is unlikely."""
        for name, column in self.columns.items():
            if name and name in column:
                place = self.place(column.index(name))
                return (
                    f". Is its first line a row? {name[:40]!r} is in {place} as well. Then write "
                    "the names of the columns before it, such as label,text"
                )
        return ""

    def texts(self, name: str, missing: str | None = None) -> list[str]:
        """Return a column as strings; numbers are converted.

        `missing` replaces missing values; None: they raise ValueError.
        """
        return [self._text(i, name, value, missing) for i, value in enumerate(self.column(name))]

    def _text(self, row: int, name: str, value: Any, missing: str | None) -> str:
        """Return a value of a column as a string, checked."""
        if not isinstance(value, str) and isinstance(value, Iterable):
            raise ValueError(
                f"{self.path}: {self.place(row)} has {a_type(value)} in the column {name!r}; "
                "expected a string or a number in every row"
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

    def words(self, name: str, expected: str, missing: Sequence[str] = ("",)) -> list[str]:
        """Return a column of strings without surrounding spaces, none of which may be missing.

        `expected` describes the values in messages; `missing` are the words for a missing value.
        """
        words = [text.strip() for text in self.texts(name)]
        for i, word in enumerate(words):
            if word.casefold() in missing:
                problem = f"{word!r} for" if word else "no"
                raise ValueError(
                    f"{self.path}: {self.place(i)} has {problem} {name!r}; expected {expected} in "
                    "every row. Complete it or remove the row"
                )
        return words


def table_format(path: Path) -> str | None:
    """Return "csv", "json" or "parquet" by a file's suffix; None for any other."""
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def read_table(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", fill_short_rows: bool = False
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        CSV with a heading (comma, semicolon, tab or | between fields), TSV, JSON (an object in each
        line, a list of objects, or a list for each column), each also with ``.gz``; or Parquet,
        with pyarrow. "-" is CSV or JSON from standard input. Without a heading, rows of numbers are
        series: a value for each step, and perhaps a label before or after them. A file with
        another ending, or "-", may be in fastText's format: its columns are "label" and "text".
    encoding : str
        Of text files. UTF-8 and UTF-16 are also recognized by a byte order mark.
    fill_short_rows : bool
        Whether a row of a CSV file that lacks its last fields has empty ones; otherwise it is an
        error.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        The file does not exist; it is empty, broken or in another encoding (the message names
        each line); or pyarrow is not installed.
    """
    path = checks.path("path", path)
    is_stdin = str(path) == "-"
    format = "csv" if is_stdin else table_format(path)
    if format == "parquet":
        check_file(path)
        return _read_parquet(path)
    is_fasttext = is_fasttext_file(path)
    if format is None and not is_fasttext and not path.is_dir():
        raise ValueError(
            f"{path} ends in {path.suffix!r}; expected {', '.join(SUFFIXES)}, also with .gz, or "
            f"lines that begin with one of fastText's labels, __label__{_conversion_hint(path)}"
        )
    text = decode_file(path, encoding)
    shown_path = Path(display_name(path))
    if is_fasttext or (is_stdin and has_fasttext_labels(text)):
        return Table(shown_path, *read_fasttext_table(text))
    if is_stdin and text.lstrip().startswith(("[", "{")):
        format = "json"
    check_is_no_page(str(shown_path), text)
    if format == "json":
        return Table(shown_path, *read_json_table(shown_path, text))
    return Table(shown_path, *read_csv_table(shown_path, text, fill_short_rows=fill_short_rows))


def is_fasttext_file(path: Path) -> bool:
    """Return whether a file begins with one of fastText's labels; its ending is that of no table.

    fastText's own files end in .txt, .train or .valid.
    """
    if table_format(path) is not None or not path.is_file():
        return False
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as file:
            beginning = file.read(BEGINNING)
    except (OSError, EOFError, zlib.error):
        return False  # whoever reads it says why it cannot be read
    return has_fasttext_labels(beginning.decode("utf-8-sig", "replace"))


def _conversion_hint(path: Path) -> str:
    """Return how to make a table of a spreadsheet or an archive; "" for any other file."""
    suffix = path.suffix.lower()
    if suffix in ARCHIVES:
        return ". Unpack it, and name the file in it"
    if suffix in (".xlsx", ".xls", ".ods"):
        return ". In Excel or LibreOffice: save as CSV UTF-8"
    return ""


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
