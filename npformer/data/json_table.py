"""Tables in JSON: an object in each line, a list of objects, or a list for each column."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from npformer.core import a_type
from npformer.data.headings import distinct_names

Columns = dict[str, list[Any]]

SPLIT = {"columns", "data"}
"""Names in the object that pandas writes with ``orient="split"``."""


def read_json_table(path: Path, text: str) -> tuple[Columns, list[int] | None]:
    """Return the columns of a table, and the line of each row if each row has its own line."""
    rows, lines = _rows(path, text)
    if len(rows) == 1 and isinstance(rows[0], dict):
        columns = _read_columns(path, rows[0])
        if columns is not None:
            return columns, None
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            place = f"row {i + 1}" if lines is None else f"line {lines[i]}"
            raise ValueError(
                f"{path}: {place} is {a_type(row)}; expected an object such as "
                '{"text": "...", "label": "..."} in each line, or a list of them'
            )
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}, lines


def _rows(path: Path, text: str) -> tuple[list[Any], list[int] | None]:
    """Return the values in a file, and the line of each if each has its own line."""
    one_in_each_line = bool({".jsonl", ".ndjson"} & {*path.suffixes[-2:]})
    if not one_in_each_line:
        if text.lstrip().startswith("["):
            return _parse(path, "", text), None
        only_object = _only_object(text)
        if only_object is not None:
            return [only_object], None
    return _parse_lines(path, text)


def _only_object(text: str) -> dict[str, Any] | None:
    """Return the only object in a file; None if there are several, or if it is broken."""
    try:
        content = json.loads(text, object_pairs_hook=_record)
    except (ValueError, RecursionError):
        return None  # reading line by line gives a better message
    return content if isinstance(content, dict) else None


def _read_columns(path: Path, content: dict[str, Any]) -> Columns | None:
    """Return the columns of an object with a list, or values by row, for each column; else None."""
    if content.keys() >= SPLIT and all(isinstance(content[name], list) for name in SPLIT):
        return _split(path, content["columns"], content["data"])
    if content and all(isinstance(column, dict) for column in content.values()):
        return _read_columns_by_row(path, content)
    if not any(isinstance(column, list) for column in content.values()):
        return None
    _check_is_no_list_of_rows(path, content)
    lengths = {
        name: len(column) if isinstance(column, list) else a_type(column)
        for name, column in content.items()
    }
    if len({*lengths.values()}) > 1:
        examples = ", ".join(f"{name!r} {length}" for name, length in [*lengths.items()][:4])
        raise ValueError(
            f"{path} has a list for each column, with different numbers of rows: {examples}; "
            "expected equally many"
        )
    return content


def _check_is_no_list_of_rows(path: Path, content: dict[str, Any]) -> None:
    """Raise ValueError for an object that wraps a list of rows."""
    for name, column in content.items():
        if isinstance(column, list) and column and all(isinstance(row, dict) for row in column):
            raise ValueError(
                f"{path} is an object whose {name!r} is a list of rows; expected that list alone. "
                f"In Python: json.dump(json.load(file)[{name!r}], other_file)"
            )


def _read_columns_by_row(path: Path, content: dict[str, dict[str, Any]]) -> Columns:
    """Return columns from objects with a value for each row name, as pandas writes them."""
    row_names = [*next(iter(content.values()))]
    for name, column in content.items():
        if column.keys() != {*row_names}:
            raise ValueError(
                f"{path} has values by row in each column, and the rows of {name!r} differ from "
                f"those of {next(iter(content))!r}; expected the same rows"
            )
    return {name: [column[row] for row in row_names] for name, column in content.items()}


def _split(path: Path, names: list[Any], rows: list[Any]) -> Columns:
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            raise ValueError(
                f"{path}: row {i + 1} of 'data' does not have the {len(names)} values that "
                "'columns' names; expected one for each"
            )
    distinct = distinct_names(path, [str(name) for name in names])
    return {name: [row[i] for row in rows] for i, name in enumerate(distinct)}


def _parse_lines(path: Path, text: str) -> tuple[list[Any], list[int]]:
    """Return the value in each line that is not empty, and the numbers of these lines."""
    numbers: list[int] = []
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            numbers.append(number)
            values.append(_parse(path, f": line {number}", line))
    return values, numbers


def _parse(path: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_record)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}{where} is not JSON that can be read: {error}") from None


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = Counter(name for name, _ in pairs)
        name, _ = names.most_common(1)[0]
        raise ValueError(f"an object has several values for {name!r}")
    return record
