"""Series of feature vectors from files: tables (long, or with one series per row), or others.

Others are .npz, and .ts and .arff of the UCR archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.archive_lines import ArchiveSeries
from npformer.data.arff_file import read_arff
from npformer.data.cells import MISSING, parse_number
from npformer.data.headings import FIRST, LAST
from npformer.data.lists import check_list
from npformer.data.series_arrays import read_arrays
from npformer.data.tables import Table, read_table
from npformer.data.times import EXPECTED, TimeError, ranks, times_of
from npformer.data.ts_file import read_ts

ARCHIVE_READERS: dict[str, Callable[[Path, str], ArchiveSeries]] = {
    ".ts": read_ts,
    ".arff": read_arff,
}
"""Of files of the UCR archive that are no tables, by the ending of the name."""

SERIES_FILES = (".npz", *ARCHIVE_READERS)
"""Endings of the names of files that hold series and are no tables."""

FEW = 10
"""In a table with fewer rows, values that rarely repeat may still be labels."""

NUMBERS = ("", "id", "index")
"""Names of columns that number the rows of a table, and so are not a label."""


@dataclass(frozen=True)
class SeriesData:
    """Series that may differ in length.

    Attributes
    ----------
    series : list of float array, shape (steps, features)
    labels : list or None
        One for each series, if the file has labels.
    ids : list of str
        Names of the series.
    features : list of str
        Names of the features.
    """

    series: list[np.ndarray]
    labels: list[Any] | None
    ids: list[str]
    features: list[str]


def read_series(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", **columns: Any
) -> SeriesData:
    """Read series from a file.

    Parameters
    ----------
    path : str or path
        A table, see `npformer.data.tables.read_table`. In long form it has a row for each step of
        each series. Without `id`, each row is a series with one feature: one column is its label,
        and the others are its steps, named by their times, such as t0, t1, ...; cells after the
        end of a shorter series are empty. Without a heading the label is in the first or the last
        column: whichever has whole numbers with few different values, or the one named by
        ``label="first"`` or ``label="last"``.
        Or a ``.ts`` or ``.arff`` file of the UCR archive, by aeon's rules: the label is last, and
        ``?`` fills a series up to the length of others.
        Or a ``.npz`` file with the arrays ``values``, (steps of all series, features), and
        ``lengths``, how many steps each series has; or with ``x``, (series, steps, features), and
        perhaps ``lengths``. Either may have ``labels``, one for each series.
    encoding : str
        Of a file of text.
    **columns
        Of a table: `id`, `time`, `label` and `features`, as in `series_of_table`.
    """
    checked_path = checks.path("path", path)
    suffix = _suffix(checked_path)
    if suffix not in SERIES_FILES:
        return series_of_table(read_table(checked_path, encoding=encoding), **columns)
    for name, column in columns.items():
        if column is not None:
            raise ValueError(
                f"{checked_path} is a {suffix} file, and {name} is given, which is for tables; "
                "expected none"
            )
    labels: list[Any] | None
    if suffix == ".npz":
        series, labels = read_arrays(checked_path)
        ids = [str(i) for i in range(len(series))]
    else:
        series, labels, lines = ARCHIVE_READERS[suffix](checked_path, encoding)
        ids = [f"line {line}" for line in lines]
    n_features = series[0].shape[1] if series else 0
    return SeriesData(series, labels, ids, features=[str(i) for i in range(n_features)])


def is_series_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds series and is no table, judging by the ending of its name."""
    return _suffix(Path(path)) in SERIES_FILES


def _suffix(path: Path) -> str:
    """Return the ending of a file's name in lower case, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def series_of_table(
    table: Table,
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
) -> SeriesData:
    """Return the series of a table.

    Parameters
    ----------
    table : Table
    id, time, label : str, optional
        Columns: the series that a row belongs to; the time by which the rows of a series are
        sorted, None to keep their order; and the label, the same in all rows of a series. Times
        are numbers, also with a unit, dates, or times of day, all in one format.
    features : list of str, optional
        Columns of the features in long form; None: all others, which must hold numbers.
    """
    if id is None:
        _check_absent_without_id("time", time)
        _check_absent_without_id("features", features)
        return _series_in_rows(table, label)
    keys = table.words(id, "the series that it belongs to")
    roles = [name for name in (id, time, label) if name is not None]
    if features is None:
        names = [name for name in table.columns if name not in roles]
    else:
        names = check_list("features", features, "the names of columns")
    if not names:
        raise ValueError(f"{table.path} has no feature columns besides {', '.join(roles)}")
    values = np.stack([_numbers(table, name) for name in names], axis=1)
    ids = list(dict.fromkeys(keys))  # in the order in which the series begin in the file
    number_of_id = {key: number for number, key in enumerate(ids)}
    groups = np.array([number_of_id[key] for key in keys])
    order = np.argsort(groups, kind="stable")
    if time is not None:
        order = _sort_by_time(table, time, groups, order, ids)
    series = np.split(values[order], np.cumsum(np.bincount(groups))[:-1])
    labels = None if label is None else _labels(table, label, groups, ids)
    return SeriesData(series, labels, ids, names)


def _check_absent_without_id(name: str, value: object) -> None:
    if value is not None:
        raise ValueError(f"{name} is given without id, which it needs; expected both")


def _sort_by_time(
    table: Table, name: str, groups: np.ndarray, in_file: np.ndarray, ids: Sequence[str]
) -> np.ndarray:
    """Return the rows series by series, each sorted by time.

    `in_file` has the rows series by series, each in the order of the file.
    """
    words = table.words(name, "a time, by which the rows of a series are sorted")
    try:
        times, are_times_of_day = times_of(words)
    except TimeError as error:
        row = error.which
        first = f", and {table.place(0)} {words[0]!r}" if row else ""
        raise ValueError(
            f"{table.path}: {table.place(row)} has the time {words[row][:40]!r} in the column "
            f"{name!r}{first}: these values cannot be sorted as times. {EXPECTED}"
        ) from None
    time_ranks = ranks(times)
    order = np.lexsort((time_ranks, groups))
    rows = in_file if are_times_of_day else order
    same_series = np.diff(groups[rows]) == 0
    not_later = np.diff(time_ranks[rows]) <= 0
    wrong = same_series & not_later
    if wrong.any():
        row = int(rows[int(wrong.argmax()) + 1])
        problem = f"of an earlier row of series {ids[groups[row]]!r}; expected each time once"
        if are_times_of_day:
            problem = (
                f"and an earlier row of series {ids[groups[row]]!r} the same or a later one: on "
                "the next day? Expected times of day in order. Write dates, too, or sort the rows"
            )
        location = f"{table.path}: {table.place(row)}"
        raise ValueError(f"{location} has the time {words[row]!r} {problem}")
    return order


def steps_of(table: Table, label: str | None = None) -> tuple[str | None, list[str]] | None:
    """Return the label column and the step columns, sorted by time, of a table with series as rows.

    None for any other table. A label column that is not named is the first or the last one.
    """
    if label is not None:
        table.column(label)
    if table.has_heading:
        return _steps_by_heading(list(table.columns), label)
    label = end_with_labels(table) if label is None else label
    return label, [name for name in table.columns if name != label]


def _steps_by_heading(columns: list[str], label: str | None) -> tuple[str | None, list[str]] | None:
    """Return the column with the labels, and the others sorted by the times in their names."""
    possible_labels = [None, *_ends(columns)] if label is None else [label]
    for possible_label in possible_labels:
        names = [name for name in columns if name != possible_label]
        try:
            times, _ = times_of(names)
        except TimeError:
            continue
        if len(set(times)) == len(names) >= 2:
            return possible_label, [names[i] for i in np.argsort(ranks(times), kind="stable")]
        return None
    return None


def end_with_labels(table: Table) -> str | None:
    """Return which end of a table without a heading has labels: "first" or "last".

    None if neither end can have them; ValueError if both can.
    """
    _check_rows_are_not_numbered(table)
    for name in (FIRST, LAST):
        if any(parse_number(word) is None for word in table.columns[name]):
            return name
    ends = [name for name in (FIRST, LAST) if _may_be_labels(table.columns[name])]
    if len(ends) > 1:
        raise ValueError(
            f"does {table.path} have its labels first or last? It has no heading, and both its "
            "first and its last column have a few whole numbers. Name it: label='first' "
            "or label='last', on the command line --label; or write the names of the columns, such "
            "as label,t0,t1, into the first line"
        )
    return ends[0] if ends else None


def check_labels_are_at(table: Table, label: str) -> None:
    """Raise ValueError if an outer column of a table without a heading holds values, not labels.

    Placeholders for labels, such as a question mark, and empty cells are allowed.
    """
    _check_rows_are_not_numbered(table)
    other = LAST if label == FIRST else FIRST
    if _are_values(table.columns[label], table.columns[other]):
        raise ValueError(
            f"{table.path} has values in its {label} column, where the training had labels; "
            "expected labels there, or a table without them. Or write the names of the columns "
            "into the first line: t0,t1,t2 for the steps, and label for labels"
        )


def _are_values(column: Sequence[str], other_end: Sequence[str]) -> bool:
    """Return whether an outer column certainly holds values rather than labels."""
    numbers = [parse_number(word) for word in column]
    if None in numbers:
        return False
    if any(parse_number(word) is None for word in other_end):
        return True
    known = [number for number in numbers if number is not None and isfinite(number)]
    if any(number % 1 for number in known):
        return True
    if len(known) < max(FEW, len(column)) or len(set(known)) == 1:
        return False
    return _may_be_labels(other_end) and not _may_be_labels(column)


def _check_rows_are_not_numbered(table: Table) -> None:
    """Raise ValueError if the first column of a table without a heading counts its rows."""
    numbers = [parse_number(word) for word in table.columns[FIRST]]
    if len(numbers) >= FEW and any(numbers == [*range(i, i + len(numbers))] for i in (0, 1)):
        raise ValueError(
            f"{table.path} has no heading, and its first column counts the rows from "
            f"{table.columns[FIRST][0]}; expected a label or a value. Remove this column; with "
            "pandas: to_csv(index=False)"
        )


def _may_be_labels(column: Sequence[str]) -> bool:
    """Return whether all numbers are whole, none is missing, and they repeat as labels do."""
    numbers = [float(word or "nan") for word in column]
    if not all(number.is_integer() for number in numbers):  # NaN is not
        return False
    n_values = len(set(numbers))
    return n_values > 1 and (len(column) < FEW or 2 * n_values <= len(column))


def _ends(columns: list[str]) -> list[str]:
    """Return the first and the last column, which may have labels, unless they number the rows."""
    return [name for name in (columns[0], columns[-1]) if name.casefold() not in NUMBERS]


def _series_in_rows(table: Table, label: str | None) -> SeriesData:
    """Return the series of a table in which each row is a series."""
    columns = steps_of(table, label)
    if columns is None:
        raise ValueError(
            f"which column of {table.path} says to which series a row belongs? It has "
            f"{table.names()}. Name one: id='...', or --id COLUMN. If each "
            "row is a whole series, name its steps t0, t1, ..., beside a column of labels"
        )
    label, names = columns
    values = np.stack([_numbers(table, name, gaps=True) for name in names], axis=1)
    missing = np.isnan(values)
    lengths = len(names) - (~missing[:, ::-1]).argmax(axis=1)  # len(names) if all are missing
    gaps = missing & (np.arange(len(names)) < lengths[:, None])
    if gaps.any():
        row, step = np.argwhere(gaps)[0].tolist()
        raise ValueError(
            f"{table.path}: {table.place(row)} has nothing in the column {names[step]!r}; expected "
            "a number, except after the end of a series. Fill the gap, or remove the row"
        )
    series = [row[:n, None] for row, n in zip(values, lengths, strict=True)]
    ids = [table.place(row) for row in range(len(series))]
    labels = None if label is None else _labels(table, label, np.arange(len(series)), ids)
    return SeriesData(series, labels, ids, ["value"])


def _numbers(table: Table, name: str, gaps: bool = False) -> np.ndarray:
    """Return a column of numbers; with `gaps`, missing numbers are allowed and become NaN."""
    column = table.column(name)
    numbers = [parse_number(value) for value in column]
    for row, number in enumerate(numbers):
        is_gap = number is not None and isnan(number)
        if number is None or not (isfinite(number) or (gaps and is_gap)):
            raise _not_a_number(table, name, row, column[row])
    return np.array(numbers, dtype="float64")


def _not_a_number(table: Table, name: str, row: int, value: Any) -> ValueError:
    """Return the error for a value that is no finite number."""
    shown = "nothing" if value is None or value == "" else repr(value)
    advice = "Fill the gap, remove the row, or leave the column out"
    if parse_number(value) is None and parse_number(str(value).replace(",", ".", 1)) is not None:
        advice = f"A decimal comma? Write {value.replace(',', '.', 1)}"
    return ValueError(
        f"{table.path}: {table.place(row)} has {shown} in the column {name!r}; expected a "
        f"number in every row. {advice}"
    )


def _labels(table: Table, name: str, groups: np.ndarray, ids: list[str]) -> list[str]:
    """Return the label of each series, after checking that it has only one."""
    labels: dict[int, str] = {}  # by group; groups are numbered in the order of their first rows
    for row, value in enumerate(table.words(name, "a label", MISSING)):
        group = int(groups[row])
        earlier = labels.setdefault(group, value)
        if earlier != value:
            raise ValueError(
                f"{table.path}: {table.place(row)} gives series {ids[group]!r} the label "
                f"{value!r}, and an earlier row {earlier!r}; expected one label for a series"
            )
    return [*labels.values()]
