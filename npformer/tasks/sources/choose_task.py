"""From a file, and the options that are given with it, to the task that it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npformer.data.cells import parse_number
from npformer.data.series import is_series_file, steps_of
from npformer.data.tables import Table, is_fasttext_file, read_table
from npformer.data.text_file import display_name
from npformer.tasks.sources.data_warnings import doubt_split
from npformer.tasks.sources.file_kinds import (
    KINDS,
    OPTIONS,
    USUAL,
    choose_column,
    is_generated,
    is_text_file,
)
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.text_lines import has_lines

USUAL_PARTS = {"text": {"test": "0.1", "validation": "0.1"}, "unlabelled": {"test": "0.05"}}
"""What is not trained on, for kinds that differ from the others."""

OF_TASK = ("seed", "validation", "test", "encoding", "keep_repeated", "skip_empty", "id", "time")
"""Options that are a task's as they are."""

ROLES = ("text", "label", "source", "target", "id", "time")
"""Fields of a task that name a column."""

OF_TABLES = ("label", "id", "time", "features", "source", "target", "encoding", "skip_empty")
"""Options that say how a table of series or pairs is read."""


def choose_task(file: str, given: Mapping[str, Any], *, labelled: bool = True) -> FileTask:
    """Return the kind and the columns of a file; `given` are options by name, some of all.

    If not `labelled`, it holds texts without labels, whatever else is in it.
    """
    if labelled:
        kind, table = _kind(file, given)
    else:
        kind, table = "unlabelled", _table_of_texts(file, given)
    _check_options(file, kind, given)
    fields: dict[str, Any] = USUAL_PARTS.get(kind, {}) | {"kind": kind, "file": file}
    fields |= {name: given[name] for name in OF_TASK if name in given}
    if kind == "series":
        fields |= _columns_of_series(table, given)
        if table is not None and not table.has_heading:
            fields["n_columns"] = len(table.columns)
    elif table is not None:
        for role in KINDS[kind].columns:
            fields[role] = choose_column(table, given.get(role), role)
    if table is not None:
        role_columns = [fields.get(role) for role in ROLES]
        feature_columns = fields.get("features") or ()
        doubt_split(table.columns, [*role_columns, *feature_columns], display_name(file))
    return FileTask(**fields)


def _check_options(file: str, kind: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that is for other kinds of files."""
    for name in OPTIONS:
        if name in given and name not in KINDS[kind].options:
            suitable_kinds = " or ".join(
                other.words for other in KINDS.values() if name in other.options
            )
            raise ValueError(
                f"--{name.replace('_', '-')} is given; it is for {suitable_kinds}. {file} is read "
                f"as {KINDS[kind].words.partition(',')[0]}"
            )
    if not (is_series_file(file) or is_generated(file)):
        return
    for name in OF_TABLES:
        if name in given and not _is_encoding_of_series(name, file):
            raise ValueError(
                f"--{name.replace('_', '-')} is given; it is for tables, and {file} is none; "
                "expected none"
            )


def _is_encoding_of_series(name: str, file: str) -> bool:
    """Return whether an option is the encoding of a file of text with series."""
    return name == "encoding" and is_series_file(file) and Path(file).suffix.lower() != ".npz"


def _kind(file: str, given: Mapping[str, Any]) -> tuple[str, Table | None]:
    """Return which kind a file is, and the table if it is one."""
    if is_series_file(file):
        return "series", None
    if is_text_file(file) and not is_fasttext_file(Path(file)):
        return "text", None
    if is_generated(file):
        return "pairs", None
    table = read_table(
        file,
        encoding=given.get("encoding", "utf-8"),
        fill_short_rows=given.get("skip_empty", False),
    )
    if _holds_series(table, given):
        return "series", table
    if _holds_pairs(table, given):
        return "pairs", table
    return "texts", table


def _holds_series(table: Table, given: Mapping[str, Any]) -> bool:
    """Return whether a table holds series, judging by the options, and else by its columns."""
    if "id" in given:
        return True
    if any(name in given for name in ("text", "source", "target")):
        return False
    if "time" in given:
        return True
    label_and_steps = steps_of(table, given.get("label"))
    if not label_and_steps:
        return False
    _, steps = label_and_steps
    return any(parse_number(table.column(name)[0]) is not None for name in steps)


def _holds_pairs(table: Table, given: Mapping[str, Any]) -> bool:
    """Return whether a table holds pairs, judging by the options, and else by its columns."""
    if "source" in given or "target" in given:
        return True
    if "text" in given or "label" in given:
        return False
    columns = {*map(str.lower, table.columns)}
    roles = [role for role, names in USUAL.items() if columns.intersection(names)]
    return roles == ["source", "target"]


def _table_of_texts(file: str, given: Mapping[str, Any]) -> Table | None:
    """Return the table that texts without labels are in; None for a file with a text a line."""
    encoding = given.get("encoding", "utf-8")
    if (file == "-" and "text" in given) or not has_lines(file, USUAL["text"], encoding):
        fill_short_rows = given.get("skip_empty", False)
        return read_table(file, encoding=encoding, fill_short_rows=fill_short_rows)
    for name in ("text", "skip_empty"):
        if given.get(name):
            raise ValueError(
                f"--{name.replace('_', '-')} is given and {file} is no table; expected none: each "
                "line of a file of text that is not empty is a text"
            )
    return None


def _columns_of_series(table: Table | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column of the labels, and those of the features in a table in long form."""
    if table is None:
        return {"label": "labels"}
    features = given.get("features")
    if "id" not in given:
        label_and_steps = steps_of(table, given.get("label"))
        if label_and_steps and label_and_steps[0]:
            return {"label": label_and_steps[0], "features": features}
    label = choose_column(table, given.get("label"), "label")
    no_features = (given.get("id"), given.get("time"), label)
    return {
        "label": label,
        "features": features or [n for n in table.columns if n not in no_features],
    }
