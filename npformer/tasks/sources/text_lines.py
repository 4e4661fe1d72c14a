"""Texts without labels: the lines of a file, of standard input, or of all files in a folder."""

import csv
import io
from collections.abc import Collection
from pathlib import Path

from npformer.data.fasttext_table import has_fasttext_labels, read_fasttext_table
from npformer.data.headings import NAMES_OF_LABELS
from npformer.data.text_file import display_name, read_text
from npformer.tasks.sources.file_kinds import TEXT_FILES, is_text_file

DELIMITERS = ",;\t|"
"""What may stand between the columns of a table."""


def has_lines(place: str, columns: Collection[str], encoding: str = "utf-8") -> bool:
    """Return whether each line there is a text.

    A name shows it; of standard input, "-", the first line: that of a table names one of the
    `columns` or one of labels, or all rows have as many fields as it, of which none begins with a
    space. JSON and fastText's lines are tables.
    """
    if place == "-":
        return _are_lines(read_text("-", encoding=encoding), columns)
    return is_text_file(place) or Path(place).is_dir()


def _are_lines(text: str, columns: Collection[str]) -> bool:
    """Return whether each line of standard input is a text."""
    if not text.strip() or text.lstrip().startswith(("[", "{")) or has_fasttext_labels(text):
        return False
    if text.startswith("sep="):  # as Excel begins a table
        return False
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    except csv.Error:  # a quotation mark that opens and is never closed
        return True
    names = [name.strip().casefold() for name in rows[0]]
    if {*names} & {name.casefold() for name in (*columns, *NAMES_OF_LABELS)}:
        return False
    widths = {len(row) for row in rows}
    is_table = len(rows) > 1 and widths == {len(names)} and len(names) > 1
    return not is_table or any(field.startswith(" ") for field in rows[0])


def text_files(place: str) -> list[Path]:
    """Return the files of text in a folder and below it, by name; for a file, the file itself."""
    path = Path(place)
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and is_text_file(file.name))
    if not files:
        raise ValueError(
            f"{path} is a folder without a file of text; expected some that end in "
            f"{' or '.join(TEXT_FILES)}, with a text in each line"
        )
    return files


def read_lines(place: str, encoding: str = "utf-8") -> list[str]:
    """Return the lines that are not empty, without labels of fastText."""
    texts = [read_text(file, encoding=encoding) for file in text_files(place)]
    lines = [line.strip() for text in texts for line in _lines_of(text)]
    if not any(lines):
        raise ValueError(f"{display_name(place)} is empty; expected a text in each line")
    return [line for line in lines if line]


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text, without the labels that fastText would read in them."""
    if has_fasttext_labels(text):
        return read_fasttext_table(text)[0]["text"]
    return text.split("\n")
