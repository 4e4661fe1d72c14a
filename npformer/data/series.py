"""Series of feature vectors from files: CSV in long form, or arrays in a .npz file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.tables import Table, read_table
from npformer.data.text_file import check_file

LAYOUTS = (
    "values (steps of all series, features) with lengths (series,), or x (series, steps, features)"
)


@dataclass(frozen=True)
class SeriesData:
    """Series that may differ in length.

    Attributes
    ----------
    series : list of float array, shape (steps, features)
    labels : list or None
        One for each series, if the file has labels.
    ids : list of str
        What the series are called.
    features : list of str
        Names of the features.
    """

    series: list[np.ndarray]
    labels: list[Any] | None
    ids: list[str]
    features: list[str]


def read_series(
    path: str | os.PathLike[str],
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> SeriesData:
    """Read series from a file.

    Parameters
    ----------
    path : str or path
        A table in long form, see `npformer.data.tables.read_table`: a row for each step of each
        series. Or a ``.npz`` file with the arrays ``values``, (steps of all series, features), and
        ``lengths``, how many steps each series has; or with ``x``, (series, steps, features), and
        perhaps ``lengths``. Either may have ``labels``, one for each series.
    id, time, label : str, optional
        Columns of a table: the series that a row belongs to, which is required; the time by which
        its rows are sorted, otherwise they stay in order; and the label, the same in each series.
    features : list of str, optional
        Columns of the features; None: all others, which must hold numbers.
    """
    place = checks.path("path", path)
    if place.suffix.lower() != ".npz":
        return series_of_table(
            read_table(place, encoding=encoding), id=id, time=time, label=label, features=features
        )
    given = [name for name, v in (("id", id), ("time", time), ("label", label)) if v is not None]
    if given:
        raise ValueError(
            f"{place} is an .npz file, and {given[0]} is given, which is for tables; expected none"
        )
    return _read_arrays(place)


def series_of_table(
    table: Table,
    *,
    id: str | None,
    time: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
) -> SeriesData:
    """Return the series of a table in long form; arguments as in `read_series`."""
    if id is None:
        raise ValueError(
            f"which column of {table.path} says to which series a row belongs? It has "
            f"{', '.join(map(repr, table.columns))}. Name one: id='...', or --id COLUMN"
        )
    keys = np.array(table.texts(id))
    roles = {id, time, label} - {None}
    names = [n for n in table.columns if n not in roles] if features is None else list(features)
    if not names:
        raise ValueError(f"{table.path} has no feature columns besides {sorted(map(str, roles))}")
    values = np.stack([_numbers(table, name) for name in names], axis=1)
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype="int64")
    rank[np.argsort(first)] = np.arange(len(first))  # in the order in which they begin in the file
    groups = rank[numbers]
    if time is None:
        order = np.argsort(groups, kind="stable")
    else:
        times = _times(table, time)
        order = np.lexsort((times, groups))
        same = (np.diff(groups[order]) == 0) & (times[order][1:] == times[order][:-1])
        if same.any():
            row = int(order[int(same.argmax()) + 1])
            raise ValueError(
                f"{table.path}: {table.place(row)} has the time {table.column(time)[row]!r} of an "
                f"earlier row of series {str(keys[row])!r}; expected each time once"
            )
    counts = np.bincount(groups)
    series = np.split(values[order], np.cumsum(counts)[:-1])
    ids = [str(keys[i]) for i in np.sort(first)]
    labels = None if label is None else _labels(table, label, groups, ids)
    return SeriesData(series, labels, ids, names)


def _numbers(table: Table, name: str) -> np.ndarray:
    column = table.column(name)
    try:
        found = np.array(column, dtype="float64")
    except (TypeError, ValueError):
        found = np.array([_number(value) for value in column])
    if (wrong := ~np.isfinite(found)).any():
        row = int(wrong.argmax())
        value = column[row]
        what = "nothing" if value is None or value == "" else repr(value)
        advice = "Fill the gap, remove the row, or leave the column out"
        if isinstance(value, str) and np.isfinite(_number(value.replace(",", ".", 1))):
            advice = f"A decimal comma? Write {value.replace(',', '.', 1)}"
        raise ValueError(
            f"{table.path}: {table.place(row)} has {what} in the column {name!r}; expected a "
            f"number in every row. {advice}"
        )
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


CLOCK = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
DATE_OR_TIME = re.compile(rf"(\d{{4}}-\d\d(-\d\d([T ]{CLOCK})?)?|{CLOCK})(Z|[+-]\d\d:?\d\d)?")
"""As in ISO 8601, from the largest unit to the smallest: such text sorts by time."""

NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")
"""One whole number, and the text around it."""


def _times(table: Table, name: str) -> np.ndarray:
    """Return what rows are sorted by: numbers, dates, or text that sorts by time."""
    column = table.column(name)
    for i, value in enumerate(column):
        if value is None or value != value or not str(value).strip():
            raise ValueError(
                f"{table.path}: {table.place(i)} has no {name!r}, by which the rows of a series "
                "are sorted; expected a time in every row. Complete it or remove the row"
            )
    if all(isinstance(value, date) for value in column):
        return np.array(column, dtype="datetime64[us]")
    try:
        return np.array(column, dtype="float64")
    except (TypeError, ValueError):
        pass
    words = [str(value).strip() for value in column]
    numbered = [NUMBERED.fullmatch(word) for word in words]
    if all(numbered) and len({(m[1], m[3]) for m in numbered if m}) == 1:
        return np.array([int(m[2]) for m in numbered if m])
    wrong = next((i for i, word in enumerate(words) if not DATE_OR_TIME.fullmatch(word)), None)
    if wrong is None:
        other = (i for i, word in enumerate(words) if len(word) != len(words[0]))
        wrong = next(other, None)
    if wrong is not None:
        raise ValueError(
            f"{table.path}: {table.place(wrong)} has the time {words[wrong]!r} in the column "
            f"{name!r}, and {table.place(0)} {words[0]!r}: such text does not sort by time. "
            "Expected numbers, or dates and times of one form, such as 2024-02-01, "
            "2024-02-01T09:30 or 09:30"
        )
    return np.unique(np.array(words), return_inverse=True)[1]


def _labels(table: Table, name: str, groups: np.ndarray, ids: list[str]) -> list[str]:
    column = [words.strip() for words in table.texts(name)]
    if "" in column:
        raise ValueError(
            f"{table.path}: {table.place(column.index(''))} has no {name!r}; expected a label in "
            "every row. Complete it or remove the row"
        )
    found: list[str | None] = [None] * len(ids)
    for row, (group, value) in enumerate(zip(groups, column, strict=True)):
        if found[group] is None:
            found[group] = value
        elif found[group] != value:
            raise ValueError(
                f"{table.path}: {table.place(row)} gives series {ids[group]!r} the label "
                f"{value!r}, and an earlier row {found[group]!r}; expected one label for a series"
            )
    return [str(value) for value in found]


def _read_arrays(path: Path) -> SeriesData:
    check_file(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # NumPy's reader may raise anything
        raise ValueError(f"{path} is not a .npz file of plain arrays: {error}") from None
    if unknown := sorted(set(arrays) - {"values", "x", "lengths", "labels"}):
        raise ValueError(f"{path} has an array {unknown[0]!r}; expected {LAYOUTS}, and labels")
    if ("values" in arrays) == ("x" in arrays) or ("values" in arrays and "lengths" not in arrays):
        raise ValueError(f"{path} has {', '.join(arrays) or 'no array'}; expected {LAYOUTS}")
    lengths = arrays.get("lengths")
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        raise ValueError(
            f"{path}: lengths is {lengths.dtype} {lengths.shape}; expected whole numbers, (series,)"
        )
    series = _split(path, arrays, lengths)
    labels = arrays.get("labels")
    if labels is not None and labels.shape != (len(series),):
        raise ValueError(
            f"{path}: labels has shape {labels.shape} and there are {len(series)} series; expected "
            "one label for each"
        )
    n_features = series[0].shape[1] if series else 0
    return SeriesData(
        series,
        None if labels is None else labels.tolist(),
        [str(i) for i in range(len(series))],
        [str(i) for i in range(n_features)],
    )


def _split(path: Path, arrays: dict[str, np.ndarray], lengths: np.ndarray | None) -> Any:
    name = "values" if "values" in arrays else "x"
    values, axes = arrays[name], 2 if name == "values" else 3
    if values.ndim == axes - 1:
        values = values[..., None]  # one feature
    if values.ndim != axes or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{path}: {name} is {values.dtype} {values.shape}; expected numbers, {LAYOUTS}"
        )
    if name == "values":
        assert lengths is not None
        if (lengths < 1).any() or lengths.sum() != len(values):
            raise ValueError(
                f"{path}: lengths add up to {lengths.sum()}, and values has {len(values)} rows; "
                "expected the same number, and each at least 1"
            )
        return np.split(values, np.cumsum(lengths)[:-1])
    if lengths is None:
        return list(values)
    if len(lengths) != len(values) or not ((lengths >= 1) & (lengths <= values.shape[1])).all():
        raise ValueError(
            f"{path}: lengths must be from 1 to {values.shape[1]}, one for each of the "
            f"{len(values)} series"
        )
    return [each[:n] for each, n in zip(values, lengths, strict=True)]
